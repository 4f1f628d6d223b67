/** The door for tests of packs (`svc-code/kernel/testing`): what the kernel has for them, and the full server with a scripted model. */
export * from '../kernel/testing.ts'
export {
  modelFailure,
  modelText,
  type Reply,
  type ReplyScript,
  replyScript,
  type ScriptedModel,
  scriptedModel,
  toolCalls
} from './scripted-model.ts'
export { type PromptEnd, startTestServer, type TestServer, type TestServerOptions } from './server.ts'
