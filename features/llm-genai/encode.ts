/** From a model request to the body of `:streamGenerateContent`. Pure. */
import {
  argumentsObject,
  callName,
  canThink,
  GrowingWire,
  isMedium,
  keptWith,
  type LlmCallPart,
  type LlmContent,
  type LlmMessage,
  type LlmRequest,
  type LlmTool,
  samplingOf,
  textOf,
  thinkingFrom,
  turnStart
} from '../llm/index.ts'
import { budgets, type Family, familyOf, imageTypes, levels, noSignature } from './names.ts'
import { extraNames, readReplayData } from './replay-data.ts'
import { toSchema } from './schema.ts'

type Part = Record<string, unknown>
interface Content {
  readonly role: 'user' | 'model'
  readonly parts: Part[]
}
type ToolMessage = Extract<LlmMessage, { role: 'tool' }>

/** Never throws: what the wire has no place for is left out, and said to the model. */
export function encode(request: LlmRequest): Record<string, unknown> {
  const { model, system, tools } = request
  const limit = request.max_output_tokens ?? model.max_output_size
  const thinking = thinkingConfig(request)
  const { temperature, top_p } = samplingOf(model, request.effort === 'off')
  const generationConfig = {
    ...(limit !== undefined && { maxOutputTokens: Math.max(1, limit) }),
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { topP: top_p }),
    ...(thinking && { thinkingConfig: thinking })
  }
  return {
    ...(system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
    contents: encodeContents(request),
    ...(tools.length > 0 && {
      tools: [{ functionDeclarations: tools.map(declarationOf) }]
    }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig })
  }
}

const declarationOf = keptWith(({ name, description, parameters }: LlmTool) => {
  const schema = toSchema(parameters)
  return { name, description, ...(schema && { parameters: schema }) }
})

const grown = new GrowingWire<Content>()

function encodeContents(request: LlmRequest): Content[] {
  const { messages, model, replayed_thinking } = request
  const from = thinkingFrom(request)
  // Newest models refuse the calls of the turn that runs when the first of a step has no signature: another model made it.
  const signedFrom = familyOf(model.name)?.thinks === 'level' ? turnStart(messages) : Number.POSITIVE_INFINITY
  return grown.of(messages, { key: String(replayed_thinking), marks: [from, signedFrom] }, (share, first) => {
    const known = new Map<string, string>() // results follow their calls, in the same share
    const contents: Content[] = []
    for (let index = 0; index < share.length; index++) {
      const message = share[index]!
      const at = first + index
      if (message.role === 'tool') {
        // The answers to the calls of one step must stand in one content; their images follow them.
        const results = untilOther(share, index)
        index += results.length - 1
        const images = results.flatMap(({ content }) => content.filter(isMedium)).map(media)
        contents.push({ role: 'user', parts: [...results.map(result => functionResponse(result, known)), ...images] })
        continue
      }
      const parts = message.content.flatMap(part =>
        part.type === 'tool_call'
          ? [functionCall(part, known, replayed_thinking === undefined || at >= from)]
          : contentParts(part, at >= from)
      )
      const call = parts.find(part => 'functionCall' in part)
      if (call && at >= signedFrom) call.thoughtSignature ??= noSignature
      if (parts.length > 0) contents.push({ role: message.role === 'user' ? 'user' : 'model', parts })
    }
    return contents
  })
}

function untilOther(messages: readonly LlmMessage[], from: number): ToolMessage[] {
  const results: ToolMessage[] = []
  for (let at = from; at < messages.length; at++) {
    const message = messages[at]!
    if (message.role !== 'tool') break
    results.push(message)
  }
  return results
}

/** On this wire the first character is none of those that can only follow. */
const nameOf = (name: string) => callName(name).replace(/^[^a-zA-Z_]/, '_')

/** The id goes out only if the provider gave it: servers of this wire differ in whether they know the field. */
function functionCall({ id, name, arguments: text, extras }: LlmCallPart, known: Map<string, string>, signs: boolean): Part {
  const own = extras?.[extraNames.id]
  if (own !== undefined) known.set(id, own)
  const signature = extras?.[extraNames.signature]
  return {
    functionCall: { ...(own !== undefined && { id: own }), name: nameOf(name), args: argumentsObject(text) },
    ...(signs && signature !== undefined && { thoughtSignature: signature })
  }
}

function functionResponse({ tool_call_id, name, content, is_error }: ToolMessage, known: Map<string, string>): Part {
  const own = known.get(tool_call_id)
  const text = textOf(content) || (content.some(isMedium) ? '(the result is an image; it follows)' : '')
  return {
    functionResponse: { ...(own !== undefined && { id: own }), name: nameOf(name), response: is_error ? { error: text } : { output: text } }
  }
}

function contentParts(part: LlmContent, thinks: boolean): Part[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ text: part.text }]
  if (part.type !== 'thinking') return [media(part)]
  const replay = readReplayData(part.signature)
  if (!replay || !thinks) return []
  const { on, signature } = replay
  const signed = signature === '' ? {} : { thoughtSignature: signature }
  return [on === 'answer' ? { text: '', ...signed } : { text: part.text, thought: true, ...signed }]
}

function media(part: LlmContent): Part {
  if (part.type === 'image') return inline(part.media_type, part.data)
  if (part.type === 'video') return { inlineData: { mimeType: part.media_type, data: part.data } }
  const url = part.type === 'image_url' ? part.url : ''
  const data = /^data:([\w/+.-]+);base64,(.*)$/s.exec(url)
  if (data) return inline(data[1] ?? '', data[2] ?? '')
  if (!/^(https?|gs):/.test(url)) return notSent('an image at an address of another kind')
  return { fileData: { mimeType: typeByName(url), fileUri: url } }
}

function inline(mimeType: string, data: string): Part {
  return imageTypes.includes(mimeType) ? { inlineData: { mimeType, data } } : notSent(`an image of type ${mimeType}`)
}

/** Refusing the request would end every later turn, too. */
const notSent = (what: string): Part => ({ text: `[${what}; it cannot be sent to this provider]` })

/** The type that the name of an address promises; the provider looks at the bytes anyway. */
function typeByName(url: string): string {
  const ending = /\.(\w+)$/.exec(url.replace(/[?#].*$/s, ''))?.[1]?.toLowerCase() ?? ''
  return imageTypes.find(type => type === `image/${ending}`) ?? 'image/jpeg'
}

/** `thinkingConfig` of the request, or undefined where the model would refuse one. */
function thinkingConfig({ model, effort }: LlmRequest): Readonly<Record<string, unknown>> | undefined {
  const family = familyOf(model.name)
  const off = effort === 'off' || effort === ''
  const able = family ? family.thinks !== 'never' : canThink(model)
  // A model that is not known to think is left alone, unless somebody asks for it.
  if (family?.thinks === 'never' || (off && !able)) return undefined
  if (effort === 'on') return { includeThoughts: true }
  return { includeThoughts: !off, ...amount(family, off ? undefined : effort) }
}

function amount(family: Family | undefined, effort: string | undefined): Readonly<Record<string, unknown>> {
  if (family?.thinks === 'level') {
    return { thinkingLevel: effort === undefined ? family.off : Object.hasOwn(levels, effort) ? levels[effort] : effort.toUpperCase() }
  }
  const { least, most } = family?.thinks === 'budget' ? family : { least: 0, most: Number.POSITIVE_INFINITY }
  const wanted = effort === undefined ? 0 : Object.hasOwn(budgets, effort) ? budgets[effort]! : budgets.high!
  return { thinkingBudget: Math.min(Math.max(wanted, least), most) }
}
