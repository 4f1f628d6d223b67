/**
 * Types of the server's API: the shared shapes, `paths` for REST, and the frames of the WebSocket.
 * Made by .ci/client-types.mjs from the documents that the server serves. Do not edit.
 */

export type MediaPart =
  | {
      type: 'image'
      source: MediaSource
    }
  | {
      type: 'video'
      source: MediaSource
    }
  | FilePart
export type MediaSource =
  | {
      kind: 'url'
      url: string
      id?: string
    }
  | {
      kind: 'base64'
      media_type: string
      data: string
    }
  | {
      kind: 'file'
      /** an upload */
      file_id: string
    }
  | {
      kind: 'session_media'
      /** a medium that belongs to the session */
      file_id: string
      /** told by the server, whatever a prompt says */
      media_type?: string
    }
export type McpServerConfig =
  | McpStdioConfig
  | {
      transport: 'http' | 'sse'
      url: string
      headers?: {
        [k: string]: string
      }
      auth?: 'oauth'
      bearerTokenEnvVar?: string
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
export type AddMcpServerData = McpManagedServer[]
export type QuestionItemAnswer =
  | {
      kind: 'single'
      option_id: string
    }
  | {
      kind: 'multi'
      option_ids: string[]
    }
  | {
      kind: 'other'
      text: string
    }
  | {
      kind: 'multi_with_other'
      option_ids: string[]
      other_text: string
    }
  | {
      kind: 'skipped'
    }
export type ApprovalDecision = 'approved' | 'rejected' | 'cancelled'
/**
 * Wire protocol
 *
 */
export type ProviderType = 'svc' | 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai' | 'compat_cloud'
export type ContentPart =
  | {
      type: 'text'
      text: string
    }
  | {
      type: 'image'
      source: MediaSource
    }
  | {
      type: 'video'
      source: MediaSource
    }
  | FilePart
  | {
      type: 'tool_use'
      tool_call_id: string
      tool_name: string
      input: unknown
    }
  | {
      type: 'tool_result'
      tool_call_id: string
      output: unknown
      is_error?: boolean
    }
  | {
      type: 'thinking'
      thinking: string
      signature?: string
    }
export type DeleteMcpServerData = McpManagedServer[]
export type GetLoginData = LoginFlow | null
export type GetOauthUsageData = AccountUsage | AccountError
export type GetOauthUserinfoData = AccountProfile | AccountError
export type GetSessionGoalData = Goal | null
export type McpLocator =
  | {
      source: 'global'
      name: string
    }
  | {
      source: 'plugin'
      pluginId: string
      serverName: string
    }
export type InspectMcpServersData = McpInspection[]
export type ListManagedMcpServersData = McpManagedServer[]
export type PendingInteraction = 'none' | 'approval' | 'question'
/**
 * how the last turn ended
 *
 */
export type TurnReason = 'completed' | 'cancelled' | 'failed'
export type ListSessionItemsData = SessionItemPage | SessionGroupPage
export type SessionActivity = 'running' | 'approval' | 'question' | 'failed' | 'idle'
export type MessageRole = 'user' | 'assistant' | 'tool' | 'system'
export type TranscriptOp =
  | {
      op: 'turn.upsert'
      turn: TranscriptTurnHead
    }
  | {
      op: 'step.upsert'
      turnId: string
      step: TranscriptStepHead
    }
  | {
      op: 'frame.upsert'
      turnId: string
      stepId: string
      frame: TranscriptFrame
    }
  | {
      op: 'append'
      target:
        | {
            type: 'frame'
            turnId: string
            stepId: string
            frameId: string
          }
        | {
            type: 'task'
            taskId: string
          }
      /** length of the text before it, UTF-16 units */
      offset: number
      text: string
    }
  | {
      op: 'marker.upsert'
      item: TranscriptMarker
    }
  | {
      op: 'taskref.upsert'
      item: TranscriptTaskRef
    }
  | {
      op: 'task.upsert'
      task: TranscriptTask
    }
  | {
      op: 'interaction.upsert'
      interaction: TranscriptInteraction
    }
  | {
      op: 'attachment.upsert'
      attachment: TranscriptAttachment
    }
  | {
      op: 'todo.upsert'
      todo: TranscriptTodo
    }
  | {
      op: 'prompt.upsert'
      prompt: TranscriptPrompt
    }
  | {
      op: 'meta.merge'
      meta: {
        goal?: TranscriptGoal | null
        modes?: {
          plan?: {
            reviewPath?: string
            version?: number
          } | null
          swarm?: {
            trigger?: string
          } | null
        }
        /** turn: one runs; absent: none ever did */
        activity?: 'idle' | 'turn'
        agent?: TranscriptAgentState
      }
    }
  | {
      op: 'items.remove'
      ids: string[]
    }
export type TranscriptFrame =
  | {
      kind: 'text'
      frameId: string
      role: 'assistant' | 'user'
      /** the whole text so far */
      text: string
      attachmentIds?: string[]
      /** the origin as it is on record */
      origin?: {
        kind: string
        [k: string]: unknown
      }
      taskId?: string
    }
  | {
      kind: 'thinking'
      frameId: string
      text: string
    }
  | {
      kind: 'tool'
      frameId: string
      toolCallId: string
      name: string
      state: 'running' | 'done' | 'error'
      /** arguments as they were parsed */
      input?: {
        [k: string]: unknown
      }
      /** arguments as the model wrote them */
      inputText?: string
      /** a text, or content parts */
      output?: {
        [k: string]: unknown
      }
      display?: {
        kind: string
        [k: string]: unknown
      }
      error?: string
      progress?: {
        kind: 'stdout' | 'stderr' | 'progress' | 'status' | 'custom'
        text?: string
        percent?: number
        customKind?: string
        customData?: unknown
      }
      taskId?: string
      approvalId?: string
      todoId?: string
      agentRefs?: {
        agentId: string
        role?: 'child' | 'member'
      }[]
    }
export type McpServerInput =
  | {
      name: string
      transport: 'stdio'
      command: string
      args?: string[]
      env?: {
        [k: string]: string
      }
      cwd?: string
      executor?: 'local'
      runtime_id?: 'local'
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
  | {
      name: string
      transport: 'http'
      url: string
      headers?: {
        [k: string]: string
      }
      auth?: 'oauth'
      bearerTokenEnvVar?: string
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
  | {
      name: string
      transport: 'sse'
      url: string
      headers?: {
        [k: string]: string
      }
      auth?: 'oauth'
      bearerTokenEnvVar?: string
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
export type ReadMcpAuthStatusesData = {
  name: string
  authStatus: 'not-applicable' | 'bearer-token' | 'oauth-required' | 'oauth-authorized' | 'oauth-expired' | 'unavailable'
}[]
export type WorkStatus = 'idle' | 'running' | 'awaiting_approval' | 'awaiting_question' | 'aborted'
export type StartLoginData =
  | {
      /** oauth_<uuid> */
      flow_id: string
      provider: string
      verification_uri: string
      /** Carries the user code; to be opened in a browser */
      verification_uri_complete: string
      user_code: string
      /** Seconds left */
      expires_in: number
      /** ISO 8601, UTC */
      expires_at: string
      /** Seconds between two polls */
      interval: number
      status: 'pending'
    }
  | {
      flow_id: string
      provider: string
      status: 'authenticated'
    }
export type TaskInfo =
  | {
      /** `bash-`, `agent-` or `question-` and 8 characters of [0-9a-z] */
      taskId: string
      description: string
      /** lost: its process died with it, or left it behind */
      status: 'running' | 'completed' | 'failed' | 'timed_out' | 'killed' | 'lost'
      /** no call waits for it */
      detached?: boolean
      /** ms since 1970 */
      startedAt: number
      endedAt: number | null
      stopReason?: string
      /** the agent is not told of its end */
      terminalNotificationSuppressed?: boolean
      /** time that it may take; absent: no limit */
      timeoutMs?: number
      kind: 'process'
      command: string
      pid: number
      parentToolCallId?: string
      exitCode: number | null
    }
  | {
      /** `bash-`, `agent-` or `question-` and 8 characters of [0-9a-z] */
      taskId: string
      description: string
      /** lost: its process died with it, or left it behind */
      status: 'running' | 'completed' | 'failed' | 'timed_out' | 'killed' | 'lost'
      /** no call waits for it */
      detached?: boolean
      /** ms since 1970 */
      startedAt: number
      endedAt: number | null
      stopReason?: string
      /** the agent is not told of its end */
      terminalNotificationSuppressed?: boolean
      /** time that it may take; absent: no limit */
      timeoutMs?: number
      kind: 'agent'
      agentId?: string
      subagentType?: string
      parentToolCallId?: string
      model?: string
      thinkingEffort?: string
    }
  | {
      /** `bash-`, `agent-` or `question-` and 8 characters of [0-9a-z] */
      taskId: string
      description: string
      /** lost: its process died with it, or left it behind */
      status: 'running' | 'completed' | 'failed' | 'timed_out' | 'killed' | 'lost'
      /** no call waits for it */
      detached?: boolean
      /** ms since 1970 */
      startedAt: number
      endedAt: number | null
      stopReason?: string
      /** the agent is not told of its end */
      terminalNotificationSuppressed?: boolean
      /** time that it may take; absent: no limit */
      timeoutMs?: number
      kind: 'question'
      questionCount: number
      toolCallId?: string
    }
export type UpdateMcpServerBody =
  | McpStdioConfig
  | {
      transport: 'http'
      url: string
      headers?: {
        [k: string]: string
      }
      auth?: 'oauth'
      bearerTokenEnvVar?: string
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
  | {
      transport: 'sse'
      url: string
      headers?: {
        [k: string]: string
      }
      auth?: 'oauth'
      bearerTokenEnvVar?: string
      /** default true */
      enabled?: boolean
      startupTimeoutMs?: number
      toolTimeoutMs?: number
      /** only these */
      enabledTools?: string[]
      disabledTools?: string[]
    }
export type UpdateMcpServerData = McpManagedServer[]

export interface AbortPromptData {
  aborted: boolean
}
export interface AbortSessionData {
  aborted: boolean
}
export interface AccountError {
  kind: 'error'
  message: string
  /** HTTP status of the account service, when there is one */
  status?: number
}
export interface AccountProfile {
  kind: 'ok'
  userInfo: {
    userId: string
    nickname: string
    status: string | number
    region: string
    userLevel: string | number
    userLevelName: string
    domain: string | number
    domainName: string
    globalId?: string
    bio?: string
    avatar?: string
    username?: string
    email?: string
    phone?: {
      countryCode: string
      number: string
    }
    createdTime?: string | number
    lastLoginTime?: string | number
  }
}
export interface AccountQuota {
  name?: string
  window?: {
    duration: number
    unit: 'minute' | 'hour' | 'day' | 'week'
  }
  used: number
  limit: number
  reset_at?: string
}
export interface AccountUsage {
  kind: 'ok'
  summary: AccountQuota | null
  limits: AccountQuota[]
  extra_usage: {
    balance_cents: number
    total_cents: number
    monthly_charge_limit_enabled: boolean
    monthly_charge_limit_cents: number
    monthly_used_cents: number
    currency: string
  } | null
}
export interface ActivateSessionSkillBody {
  args?: string
  /** images, videos and files */
  attachments?: MediaPart[]
}
export interface FilePart {
  type: 'file'
  file_id: string
  name: string
  media_type: string
  size: number
}
export interface ActivateSessionSkillData {
  /** false: a hook blocked it */
  activated: boolean
  skill_name: string
}
export interface McpManagedServer {
  name: string
  /** whole where it can be changed */
  config:
    | McpServerConfig
    | {
        [k: string]: unknown
      }
  source: 'global' | 'plugin'
  /** path of the file, or id of the plugin */
  origin: string
  /** it stands in the file of the user */
  mutable: boolean
  plugin?: {
    id: string
    name: string
  }
}
export interface McpStdioConfig {
  transport: 'stdio'
  command: string
  args?: string[]
  env?: {
    [k: string]: string
  }
  cwd?: string
  executor?: 'local'
  runtime_id?: 'local'
  /** default true */
  enabled?: boolean
  startupTimeoutMs?: number
  toolTimeoutMs?: number
  /** only these */
  enabledTools?: string[]
  disabledTools?: string[]
}
export interface AddMcpServerQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface AgentCreatedEvent {
  type: 'agent.created'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    type: 'agent.created'
  }
}
export interface AgentDisposedEvent {
  type: 'agent.disposed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    type: 'agent.disposed'
  }
}
export interface AgentStatusUpdatedEvent {
  type: 'agent.status.updated'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    model?: string
    thinkingEffort?: string
    contextTokens?: number
    maxContextTokens?: number
    contextUsage?: number
    planMode?: boolean
    swarmMode?: boolean
    permission?: string
    usage?: AgentUsage
    phase?: {
      kind: string
      [k: string]: unknown
    }
    type: 'agent.status.updated'
  }
}
export interface AgentUsage {
  byModel?: {
    [k: string]: TokenUsage
  }
  currentTurn?: TokenUsage
  total?: TokenUsage
}
export interface TokenUsage {
  inputOther: number
  output: number
  inputCacheRead: number
  inputCacheCreation: number
}
export interface AnswerQuestionBody {
  /** item id to answer */
  answers: {
    [k: string]: QuestionItemAnswer
  }
  method?: 'enter' | 'space' | 'number_key' | 'click'
  /** handed to the agent beside the answers */
  note?: string
}
export interface AnswerQuestionData {
  resolved: true
  /** ISO 8601, UTC */
  resolved_at: string
}
export interface Approval {
  /** approval_<uuid> */
  approval_id: string
  session_id: string
  /** 0-based turn number */
  turn_id?: number
  tool_call_id: string
  tool_name: string
  /** short phrase */
  action: string
  tool_input_display: ToolInputDisplay
  /** ISO 8601, UTC */
  created_at: string
  /** the request is withdrawn at this instant */
  expires_at: string
}
/**
 * display union on `kind`
 *
 */
export interface ToolInputDisplay {
  kind: string
  [k: string]: unknown
}
export interface ApprovalAnswer {
  decision: ApprovalDecision
  /** with approved: remember for the rest of the session; else ignored */
  scope?: 'session'
  /** handed back to the agent */
  feedback?: string
  /** label of the chosen option when the request offers some */
  selected_label?: string
}
export interface ApprovalRequestedEvent {
  type: 'event.approval.requested'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    type: 'event.approval.requested'
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
  } & Approval
}
export interface ApprovalResolvedEvent {
  type: 'event.approval.resolved'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    approval_id: string
    /** ISO 8601, UTC */
    resolved_at: string
    decision: ApprovalDecision
    /** with approved: remember for the rest of the session; else ignored */
    scope?: 'session'
    /** handed back to the agent */
    feedback?: string
    /** label of the chosen option when the request offers some */
    selected_label?: string
    type: 'event.approval.resolved'
  }
}
export interface ArchiveSessionData {
  archived: boolean
}
export interface AssistantDeltaEvent {
  type: 'assistant.delta'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    delta: string
    type: 'assistant.delta'
  }
  /** length of the streamed text before this chunk, UTF-16 units */
  offset?: number
}
export interface AuthReadiness {
  /** A provider is configured, a default model is set, and the managed login is not revoked */
  ready: boolean
  providers_count: number
  default_model: string | null
  managed_provider: {
    name: string
    status: 'authenticated' | 'expired' | 'revoked' | 'unauthenticated'
  } | null
  /** A default model that does not exist, a configuration file that cannot be used; absent when there is neither */
  warnings?: string[]
}
export interface BeginMcpAuthData {
  status: 'authorization-required' | 'already-authorized'
  flowId?: string
  authorizationUrl?: string
}
export interface BeginMcpAuthQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface BrowseDirectoriesData {
  /** links resolved */
  path: string
  parent: string | null
  /** by name, hidden ones last; links are left out */
  entries: {
    name: string
    path: string
    is_dir: true
  }[]
}
export interface BrowseDirectoriesQuery {
  /** absolute; default: the user's home */
  path?: string
}
export interface BtwSessionData {
  agent_id: string
}
export interface CancelLoginData {
  cancelled: boolean
  status: 'pending' | 'authenticated' | 'denied' | 'expired' | 'cancelled'
}
export interface CancelLoginQuery {
  provider?: string
}
export interface CancelMcpAuthBody {
  flowId: string
}
export interface CancelSessionTaskData {
  cancelled: true
}
export interface Capability {
  id: string
  pluginId?: string
  displayName: string
  description: string
  /** on this platform and architecture */
  supported: boolean
  state: 'ready' | 'partial' | 'not_installed' | 'unsupported'
  version?: string
  /** empty where it is not supported */
  steps: CapabilityStep[]
  install: CapabilityInstall
}
export interface CapabilityStep {
  id: string
  state: 'ok' | 'missing' | 'failed'
  /** for people */
  detail?: string
  /** does not count for the state of the capability */
  optional?: boolean
}
export interface CapabilityInstall {
  running: boolean
  /** what it does now: `plugin`, `mcp-config`, `download`, `app`, `service`, `permissions` */
  step?: string
  /** of a download whose size is known */
  percent?: number
  /** why the last one failed */
  error?: string
  /** what is left to do, or why nothing can be installed */
  note?: string
}
export interface CapabilityChangedEvent {
  type: 'event.capability.changed'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    capability_id: string
    install: CapabilityInstall
    type: 'event.capability.changed'
  }
}
export interface CatalogEntry {
  id: string
  name: string
  wire_type: ProviderType | null
  /** The wire protocol is a guess */
  guessed: boolean
  /** An import must bring a base_url */
  needs_base_url: boolean
  /** Cannot be imported */
  rejected: boolean
  reject_reason: string | null
  env_key: string | null
  models: {
    id: string
    name?: string
    /** Tokens */
    max_context_size: number
    capabilities?: string[]
    reasoning: boolean
  }[]
}
export interface ClientHelloAck {
  accepted_subscriptions: string[]
  not_found: string[]
  resync_required: string[]
  cursors: {
    [k: string]: Watermark
  }
}
export interface Watermark {
  seq: number
  epoch: string
}
export interface ClientHelloRequest {
  client_id?: string
  subscriptions?: string[]
  /** Last durable event applied, per session */
  cursors?: {
    [k: string]: Cursor
  }
  token?: string
  /** Whom to show, per session; empty shows all */
  agent_filter?: {
    [k: string]: string[]
  }
}
export interface Cursor {
  seq: number
  epoch?: string
}
export interface CloseSessionTerminalData {
  closed: boolean
}
export interface CompactSessionBody {
  /** what the summary should mind; blank: nothing */
  instruction?: string
}
export interface CompactSessionData {}
export interface CompactionBlockedEvent {
  type: 'compaction.blocked'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId?: number
    type: 'compaction.blocked'
  }
}
export interface CompactionCancelledEvent {
  type: 'compaction.cancelled'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    type: 'compaction.cancelled'
  }
}
export interface CompactionCompletedEvent {
  type: 'compaction.completed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    result: {
      summary: string
      /** messages that the context had */
      compactedCount: number
      tokensBefore: number
      tokensAfter: number
      keptUserMessageCount: number
      keptHeadUserMessageCount?: number
      /** messages that the model was not given to summarise */
      droppedCount?: number
    }
    type: 'compaction.completed'
  }
}
export interface CompactionStartedEvent {
  type: 'compaction.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    trigger: 'manual' | 'auto'
    instruction?: string
    type: 'compaction.started'
  }
}
export interface CompleteMcpAuthBody {
  flowId: string
  timeoutMs?: number
}
/**
 * Keys at the top are snake_case, those inside a domain camelCase
 *
 */
export interface Config {
  providers: {
    [k: string]: ConfigProvider
  }
  default_provider?: string
  default_model?: string
  models: {
    [k: string]: {
      provider: string
      model: string
      /** Tokens */
      maxContextSize: number
      /** Tokens */
      maxInputSize?: number
      /** Tokens */
      maxOutputSize?: number
      capabilities?: string[]
      displayName?: string
      supportEfforts?: string[]
      defaultEffort?: string
      offEffort?: string
      reasoningKey?: string
      adaptiveThinking?: boolean
      cost?: {
        input: number
        output: number
        /** As input when absent */
        cacheRead?: number
        /** As input when absent */
        cacheWrite?: number
        [k: string]: unknown
      }
      protocol?: string
      baseUrl?: string
      betaApi?: boolean
      name?: string
      aliases?: string[]
      overrides?: {
        /** Tokens */
        maxInputSize?: number
        /** Tokens */
        maxOutputSize?: number
        capabilities?: string[]
        displayName?: string
        supportEfforts?: string[]
        defaultEffort?: string
        offEffort?: string
        reasoningKey?: string
        adaptiveThinking?: boolean
        cost?: {
          input: number
          output: number
          /** As input when absent */
          cacheRead?: number
          /** As input when absent */
          cacheWrite?: number
          [k: string]: unknown
        }
        /** Tokens */
        maxContextSize?: number
        [k: string]: unknown
      }
      [k: string]: unknown
    }
  }
  thinking: {
    enabled?: boolean
    effort?: string
    keep?: string
    [k: string]: unknown
  }
  /** True when default_permission_mode is yolo */
  yolo: boolean
  default_permission_mode: 'manual' | 'yolo' | 'auto'
  permission: {
    rules?: {
      decision: 'allow' | 'deny' | 'ask'
      pattern: string
      /** default user */
      scope?: 'turn-override' | 'session-runtime' | 'project' | 'user'
      reason?: string
      [k: string]: unknown
    }[]
    allow?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
      [k: string]: unknown
    }[]
    deny?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
      [k: string]: unknown
    }[]
    ask?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
      [k: string]: unknown
    }[]
    [k: string]: unknown
  }
  /** Parsed content of the file, in its own spelling, without secrets */
  raw: {
    [k: string]: unknown
  }
  plan_mode: boolean
  default_plan_mode: boolean
  merge_all_available_skills: boolean
  extra_skill_dirs: string[]
  telemetry: boolean
  hooks: {
    event:
      | 'PreToolUse'
      | 'PostToolUse'
      | 'PostToolUseFailure'
      | 'PermissionRequest'
      | 'PermissionResult'
      | 'UserPromptSubmit'
      | 'UserPromptQueued'
      | 'TurnStarted'
      | 'Stop'
      | 'StopFailure'
      | 'Interrupt'
      | 'SessionStart'
      | 'SessionEnd'
      | 'SessionHeartbeat'
      | 'SubagentStart'
      | 'SubagentStop'
      | 'TaskStarted'
      | 'PreCompact'
      | 'PostCompact'
      | 'Notification'
    command: string
    matcher?: string
    /** Seconds */
    timeout?: number
  }[]
  services: {
    svcSearch?: {
      baseUrl?: string
      [k: string]: unknown
    }
    svcFetch?: {
      baseUrl?: string
      [k: string]: unknown
    }
    [k: string]: unknown
  }
  loop_control: {
    /** Absent or 0: unlimited */
    maxStepsPerTurn?: number
    maxAttemptsPerStep?: number
    /** Checked and kept; without effect in this server */
    maxRalphIterations?: number
    /** Tokens */
    reservedContextSize?: number
    compactionTriggerRatio?: number
    [k: string]: unknown
  }
  token_counting: {
    strategy: 'measured+estimated' | 'measured' | 'estimated'
    [k: string]: unknown
  }
  background: {
    maxRunningTasks?: number
    keepAliveOnExit?: boolean
    bashAutoBackgroundOnTimeout?: boolean
    /** Seconds */
    bashTaskTimeoutS?: number
    killGracePeriodMs?: number
    /** Checked and kept; without effect in this server */
    printWaitCeilingS?: number
    /** Checked and kept; without effect in this server */
    printBackgroundMode?: 'exit' | 'drain' | 'steer'
    /** Checked and kept; without effect in this server */
    printMaxTurns?: number
    [k: string]: unknown
  }
  subagent: {
    timeoutMs: number
    [k: string]: unknown
  }
  secondary_model: {
    defaultModel?: string
    /** Alias to description */
    models?: {
      [k: string]: string
    }
    force?: boolean
    /** Older form with one model */
    model?: string
    /** Checked and kept; without effect in this server */
    maxContextSize?: number
    /** Checked and kept; without effect in this server */
    maxInputSize?: number
    /** Checked and kept; without effect in this server */
    maxOutputSize?: number
    /** Checked and kept; without effect in this server */
    capabilities?: string[]
    /** Checked and kept; without effect in this server */
    displayName?: string
    /** Checked and kept; without effect in this server */
    reasoningKey?: string
    /** Checked and kept; without effect in this server */
    adaptiveThinking?: boolean
    /** Checked and kept; without effect in this server */
    supportEfforts?: string[]
    /** Checked and kept; without effect in this server */
    defaultEffort?: string
    /** Checked and kept; without effect in this server */
    offEffort?: string
    [k: string]: unknown
  }
  experimental: {
    [k: string]: boolean
  }
  model_catalog: {
    /** 0: off */
    refreshIntervalMs: number
    refreshOnStart: boolean
    [k: string]: unknown
  }
  offline: boolean
  tools: {
    /** empty or absent: no limit; `mcp__` entries are globs */
    enabled?: string[]
    disabled?: string[]
    [k: string]: unknown
  }
  identity: {
    /** One line */
    name?: string
    [k: string]: unknown
  }
  cron: {
    disabled?: boolean
    noJitter?: boolean
    noStale?: boolean
    /** How often it is looked for jobs that are due */
    pollIntervalMs?: number
    [k: string]: unknown
  }
  builtin_product_skills: boolean
  mcp: {
    startupTimeoutMs?: number
    toolTimeoutMs?: number
    [k: string]: unknown
  }
  extra_agent_dirs: string[]
  image: {
    /** Longest edge of images that models get */
    maxEdgePx?: number
    /** Bytes of an image that ReadMediaFile answers */
    readByteBudget?: number
    [k: string]: unknown
  }
}
export interface ConfigProvider {
  /** Wire protocol; empty when the record names none */
  type: string
  base_url?: string
  default_model?: string
  has_api_key: boolean
}
export interface ConfigChangedEvent {
  type: 'event.config.changed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** Top-level keys */
    changed_fields: string[]
    /** The same list, for clients that read this spelling */
    changedFields: string[]
    config: Config
    type: 'event.config.changed'
  }
}
export interface ConfigPatch {
  yolo?: boolean | null
  plan_mode?: boolean | null
  default_plan_mode?: boolean | null
  merge_all_available_skills?: boolean | null
  extra_skill_dirs?: string[] | null
  telemetry?: boolean | null
  hooks?:
    | {
        event:
          | 'PreToolUse'
          | 'PostToolUse'
          | 'PostToolUseFailure'
          | 'PermissionRequest'
          | 'PermissionResult'
          | 'UserPromptSubmit'
          | 'UserPromptQueued'
          | 'TurnStarted'
          | 'Stop'
          | 'StopFailure'
          | 'Interrupt'
          | 'SessionStart'
          | 'SessionEnd'
          | 'SessionHeartbeat'
          | 'SubagentStart'
          | 'SubagentStop'
          | 'TaskStarted'
          | 'PreCompact'
          | 'PostCompact'
          | 'Notification'
        command: string
        matcher?: string
        /** Seconds */
        timeout?: number
      }[]
    | null
  services?: {
    svcSearch?: {
      baseUrl?: string | null
      apiKey?: string | null
      oauth?: {
        storage?: ('file' | 'keyring') | null
        key?: string | null
        oauthHost?: string | null
      } | null
      customHeaders?: {
        [k: string]: string | null
      } | null
    } | null
    svcFetch?: {
      baseUrl?: string | null
      apiKey?: string | null
      oauth?: {
        storage?: ('file' | 'keyring') | null
        key?: string | null
        oauthHost?: string | null
      } | null
      customHeaders?: {
        [k: string]: string | null
      } | null
    } | null
  } | null
  loop_control?: {
    maxStepsPerTurn?: number | null
    maxAttemptsPerStep?: number | null
    maxRalphIterations?: number | null
    reservedContextSize?: number | null
    compactionTriggerRatio?: number | null
  } | null
  token_counting?: {
    strategy?: ('measured+estimated' | 'measured' | 'estimated') | null
  } | null
  background?: {
    maxRunningTasks?: number | null
    keepAliveOnExit?: boolean | null
    bashAutoBackgroundOnTimeout?: boolean | null
    bashTaskTimeoutS?: number | null
    killGracePeriodMs?: number | null
    printWaitCeilingS?: number | null
    printBackgroundMode?: ('exit' | 'drain' | 'steer') | null
    printMaxTurns?: number | null
  } | null
  subagent?: {
    timeoutMs?: number | null
  } | null
  secondary_model?: {
    defaultModel?: string | null
    models?: {
      [k: string]: string | null
    } | null
    force?: boolean | null
    model?: string | null
    maxContextSize?: number | null
    maxInputSize?: number | null
    maxOutputSize?: number | null
    capabilities?: string[] | null
    displayName?: string | null
    reasoningKey?: string | null
    adaptiveThinking?: boolean | null
    supportEfforts?: string[] | null
    defaultEffort?: string | null
    offEffort?: string | null
  } | null
  experimental?: {
    [k: string]: boolean | null
  } | null
  model_catalog?: {
    refreshIntervalMs?: number | null
    refreshOnStart?: boolean | null
  } | null
  providers?: {
    [k: string]: {
      type?: string | null
      api_key?: string | null
      auth?: 'none' | null
      base_url?: string | null
      oauth?: {
        storage?: ('file' | 'keyring') | null
        key?: string | null
        oauth_host?: string | null
      } | null
      env?: {
        [k: string]: string | null
      } | null
      custom_headers?: {
        [k: string]: string | null
      } | null
      default_model?: string | null
      model_source?: ('static' | 'discover' | 'oauth-catalog') | null
      source?: {
        kind?: string | null
        url?: string | null
        api_key?: string | null
      } | null
    } | null
  } | null
  models?: {
    [k: string]: {
      provider?: string | null
      model?: string | null
      maxContextSize?: number | null
      maxInputSize?: number | null
      maxOutputSize?: number | null
      capabilities?: string[] | null
      displayName?: string | null
      supportEfforts?: string[] | null
      defaultEffort?: string | null
      offEffort?: string | null
      reasoningKey?: string | null
      adaptiveThinking?: boolean | null
      cost?: {
        input?: number | null
        output?: number | null
        cacheRead?: number | null
        cacheWrite?: number | null
      } | null
      apiKey?: string | null
      oauth?: {
        storage?: ('file' | 'keyring') | null
        key?: string | null
        oauthHost?: string | null
      } | null
      protocol?: string | null
      baseUrl?: string | null
      betaApi?: boolean | null
      name?: string | null
      aliases?: string[] | null
      overrides?: {
        maxInputSize?: number | null
        maxOutputSize?: number | null
        capabilities?: string[] | null
        displayName?: string | null
        supportEfforts?: string[] | null
        defaultEffort?: string | null
        offEffort?: string | null
        reasoningKey?: string | null
        adaptiveThinking?: boolean | null
        cost?: {
          input?: number | null
          output?: number | null
          cacheRead?: number | null
          cacheWrite?: number | null
        } | null
        apiKey?: string | null
        oauth?: {
          storage?: ('file' | 'keyring') | null
          key?: string | null
          oauthHost?: string | null
        } | null
        maxContextSize?: number | null
      } | null
    } | null
  } | null
  default_model?: string | null
  default_provider?: string | null
  thinking?: {
    enabled?: boolean | null
    effort?: string | null
    keep?: string | null
  } | null
  offline?: boolean | null
  tools?: {
    enabled?: string[] | null
    disabled?: string[] | null
  } | null
  permission?: {
    rules?:
      | {
          decision: 'allow' | 'deny' | 'ask'
          pattern: string
          /** default user */
          scope?: 'turn-override' | 'session-runtime' | 'project' | 'user'
          reason?: string
        }[]
      | null
    allow?:
      | {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
      | null
    deny?:
      | {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
      | null
    ask?:
      | {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
      | null
  } | null
  default_permission_mode?: ('manual' | 'yolo' | 'auto') | null
  identity?: {
    name?: string | null
  } | null
  cron?: {
    disabled?: boolean | null
    noJitter?: boolean | null
    noStale?: boolean | null
    pollIntervalMs?: number | null
  } | null
  builtin_product_skills?: boolean | null
  mcp?: {
    startupTimeoutMs?: number | null
    toolTimeoutMs?: number | null
  } | null
  extra_agent_dirs?: string[] | null
  image?: {
    maxEdgePx?: number | null
    readByteBudget?: number | null
  } | null
  [k: string]: unknown
}
export interface ConfigWarningEvent {
  type: 'event.config.warning'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** All of them, at most 50; empty: none is left */
    warnings: {
      /** Top-level key */
      domain?: string
      message: string
    }[]
    type: 'event.config.warning'
  }
}
export interface Connection {
  id: string
  /** ISO 8601, UTC */
  connected_at: string
  remote_address: string | null
  user_agent: string | null
  has_client_hello: boolean
  subscriptions: string[]
}
export interface ContextUndoneEvent {
  type: 'context.undone'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** of the user */
    turns: number
    type: 'context.undone'
  }
}
export interface CreateFileBody {
  /** bytes; the first file part counts, whatever its name */
  file: string
  /** default: the name of the uploaded file */
  name?: string
  /** seconds; default: never */
  expires_in_sec?: number
}
export interface CreateProviderRequest {
  /** Letters, digits, -, _ and spaces; begins with a letter or digit */
  id: string
  /** Empty: none */
  api_key?: string
  type: ProviderType
  /** Trimmed; empty: none; no placeholder of an environment variable */
  base_url?: string
  /** One of models[].model */
  default_model?: string
  /**
   * No duplicate model
   *
   */
  models: ModelDeclaration[]
}
export interface ModelDeclaration {
  /** The provider's own name for it, without control characters; the alias, which stands in paths, becomes <provider_id>/<model> */
  model: string
  /** Tokens */
  max_context_size: number
  display_name?: string
  capabilities?: string[]
  /** Tokens */
  max_output_size?: number
  support_efforts?: string[]
  adaptive_thinking?: boolean
}
export interface CreateSessionChildBody {
  title?: string
  /** merged over that of the source */
  metadata?: {
    [k: string]: unknown
  }
}
export interface CreateSessionRequest {
  workspace_id?: string
  /** kept and answered as it is */
  metadata?: {
    /** absolute path of an existing directory; required without workspace_id */
    cwd?: string
    [k: string]: unknown
  }
  title?: string
  /** accepted, not applied */
  agent_config?: {
    [k: string]: unknown
  }
}
export interface CreateSessionTerminalBody {
  runtime_id?: string
  /** relative to the working directory of the session; default: that directory */
  cwd?: string
  /** default: the user's shell */
  shell?: string
  cols?: number
  rows?: number
}
export interface CronFiredEvent {
  type: 'cron.fired'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    origin: {
      kind: 'cron_job'
      jobId: string
      cron: string
      recurring: boolean
      /** times of the schedule that this one stands for; at most 1000 are counted */
      coalescedCount: number
      /** the job is older than 7 days: it fired for the last time */
      stale: boolean
    }
    prompt: string
    type: 'cron.fired'
  }
}
export interface DeleteFileData {
  deleted: true
}
export interface DeleteMcpServerQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface DeleteSessionByActionData {
  deleted: true
}
export interface DeleteSessionData {
  deleted: true
}
export interface DeleteWorkspaceData {
  deleted: true
}
export interface DetachSessionTaskData {
  /** false: it was not in the foreground */
  detached: boolean
  status: 'running' | 'completed' | 'failed' | 'cancelled'
}
export interface DiffFileBody {
  path: string
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface DiffFileData {
  path: string
  /** unified; empty: unchanged */
  diff: string
  /** it is longer than 1,048,576 characters */
  truncated: boolean
}
export interface DisablePluginData {
  ok: boolean
}
export interface DismissQuestionData {
  dismissed: true
  /** ISO 8601, UTC */
  dismissed_at: string
}
export interface DownloadFromSessionQuery {
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface EnablePluginData {
  ok: boolean
}
export interface EngineError {
  code: string
  message: string
  name?: string
  details?: {
    [k: string]: unknown
  }
  retryable: boolean
  cause?: unknown
}
export interface ErrorEvent {
  type: 'error'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    code: string
    message: string
    name?: string
    details?: {
      [k: string]: unknown
    }
    retryable: boolean
    cause?: unknown
    type: 'error'
  }
}
export interface EventFsChangedFrame {
  type: 'event.fs.changed'
  timestamp?: string
  seq: number
  session_id: string
  payload: {
    /** in order, at or under the paths that the connection watches */
    changes: FileChange[]
    coalesced_window_ms: number
    /** too many changes, or some were not seen: look again */
    truncated?: true
    /** changes of a truncated window */
    count?: number
  }
}
export interface FileChange {
  /** relative to the working directory of the session */
  path: string
  change: 'created' | 'modified' | 'deleted'
  kind: 'file' | 'directory' | 'symlink'
}
export interface ExportRequest {
  /** log of the client, at most 262144 bytes of UTF-8 */
  web_log?: string
  /** with the log of the desktop host, where there is one; default false */
  desktop?: boolean
}
export interface Feature {
  name: string
  state: 'Pending' | 'Activating' | 'Active' | 'Unloading' | 'Failed'
  meta: {
    version?: string
    /** services that nobody provides yet */
    waiting_for?: string[]
    /** why the pack failed */
    error?: string
    /** what of the pack went wrong since it was activated: listeners, taps, clean-ups */
    faults?: {
      count: number
      last: string
    }
    /** how long the pack had the event loop since it was activated, as far as the server called it; absent below 1 ms */
    time?: {
      ms: number
      calls: number
      /** calls beside which nothing else could run for half a second */
      slow?: {
        count: number
        last: string
      }
    }
  }
}
export interface FileEntry {
  /** relative to the workspace, with slashes */
  path: string
  name: string
  /** by itself: a link stays a link */
  kind: 'file' | 'directory' | 'symlink'
  /** bytes; files only */
  size?: number
  /** ISO 8601, UTC */
  modified_at: string
  etag?: string
  /** stat of a file only */
  mime?: string
  language_id?: string
  /** stat of a file only */
  is_binary?: boolean
  /** what the link says */
  is_symlink_to?: string
  git_status?: 'clean' | 'modified' | 'added' | 'deleted' | 'renamed' | 'untracked' | 'ignored' | 'conflicted'
  /** what a listing of the directory with the same options would show */
  child_count?: number
}
export interface ForkSessionBody {
  title?: string
  /** merged over that of the source */
  metadata?: {
    [k: string]: unknown
  }
}
export interface GenerateSessionTitleData {
  title: string
}
export interface GenerateTitleRequest {
  /** also in place of a title that was chosen or generated; default false */
  force?: boolean
  /** what the title is made of; default user_prompts */
  source?: 'user_prompts' | 'first_turn' | 'digest'
}
export interface GetAsyncapiDocumentData {
  asyncapi: string
  [k: string]: unknown
}
export interface GetAuthReadinessQuery {
  /** Also warn of what else is in the way of a prompt to the default model: credential, address, protocol */
  check_model?: boolean
}
export interface GetGuiStoreLengthData {
  length: number
}
export interface GetHealthData {
  ok: true
}
export interface GetItemGuiStoreData {
  value: string | null
}
export interface GetItemGuiStoreQuery {
  key: string
}
export interface LoginFlow {
  /** oauth_<uuid> */
  flow_id: string
  provider: string
  verification_uri: string
  /** Carries the user code; to be opened in a browser */
  verification_uri_complete: string
  user_code: string
  /** Seconds left */
  expires_in: number
  /** ISO 8601, UTC */
  expires_at: string
  /** Seconds between two polls */
  interval: number
  status: 'pending' | 'authenticated' | 'denied' | 'expired' | 'cancelled'
  /** ISO 8601, UTC */
  resolved_at?: string
  /** Why the flow failed */
  error_message?: string
}
export interface GetLoginQuery {
  provider?: string
}
export interface GetOauthRegionData {
  region: 'mainland-cn' | 'global'
}
export interface GetOauthUsageQuery {
  provider?: string
}
export interface GetOauthUserinfoQuery {
  provider?: string
}
export interface GetOpenapiDocumentData {
  openapi: string
  [k: string]: unknown
}
export interface GetPluginsMarketplaceData {
  entries: MarketplaceEntry[]
}
export interface MarketplaceEntry {
  id: string
  tier: 'official' | 'curated' | 'third-party'
  displayName: string
  description?: string
  homepage?: string
  keywords?: string[]
  version?: string
  /** as `POST /plugins` takes it; `capability:<id>` */
  source: string
  installed?: {
    version?: string
    enabled: boolean
  }
  updateAvailable?: boolean
  capabilityId?: string
}
export interface Goal {
  goalId: string
  objective: string
  completionCriterion?: string
  status: 'active' | 'paused' | 'blocked' | 'complete'
  turnsUsed: number
  /** output tokens of turns that worked on the goal */
  tokensUsed: number
  /** time in which the goal was active */
  wallClockMs: number
  /** null: no such limit */
  budget: {
    tokenBudget: number | null
    turnBudget: number | null
    wallClockBudgetMs: number | null
    costBudgetUsd: number | null
    remainingTokens: number | null
    remainingTurns: number | null
    remainingWallClockMs: number | null
    remainingCostUsd: number | null
    tokenBudgetReached: boolean
    turnBudgetReached: boolean
    wallClockBudgetReached: boolean
    costBudgetReached: boolean
    /** any of them is reached */
    overBudget: boolean
  }
  /** why it is paused, blocked or complete */
  terminalReason?: string
}
export interface GetSessionTaskQuery {
  with_output?: boolean
  /** how much of the output, from its end; at most 1 MiB is kept */
  output_bytes?: number
}
export interface GetSessionTranscriptPlanData {
  agent_id: string
  plans: TranscriptPlan[]
}
export interface TranscriptPlan {
  tool_call_id: string
  turn_id: string
  source: 'interaction' | 'display' | 'output'
  plan: string
  path?: string
  options?: {
    label: string
    description?: string
  }[]
  review?: {
    state: 'pending' | 'approved' | 'rejected' | 'cancelled'
    selected_option?: string
    feedback?: string
  }
}
export interface GetSessionTranscriptPlanQuery {
  /** plain id */
  agent_id: string
  tool_call_id?: string
}
export interface GetSessionTranscriptQuery {
  /** plain id */
  agent_id: string
  /** turn id; exclusive */
  before_turn?: string
  /** turn id; exclusive */
  after_turn?: string
  /** turns; fewer come when they take more than 8 MB */
  page_size?: number
}
export interface GetWorkspaceTrustData {
  trusted: boolean
}
export interface GoalChange {
  kind: 'lifecycle' | 'completion'
  status?: 'active' | 'paused' | 'blocked' | 'complete'
  reason?: string
  stats?: {
    turnsUsed: number
    tokensUsed: number
    wallClockMs: number
  }
  actor?: 'user' | 'model' | 'runtime' | 'system'
}
export interface GoalUpdatedEvent {
  type: 'goal.updated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    snapshot: Goal | null
    change?: GoalChange
    type: 'goal.updated'
  }
}
export interface GrepFilesBody {
  pattern: string
  /** false: a text */
  regex?: boolean
  case_sensitive?: boolean
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  include_globs?: string[]
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  follow_gitignore?: boolean
  /** files with matches */
  max_files?: number
  max_matches_per_file?: number
  max_total_matches?: number
  context_lines?: number
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface GrepFilesData {
  files: {
    path: string
    /** one per line */
    matches: {
      line: number
      /** character of the line at which the first match in it begins */
      col: number
      /** the line; above 2,000 characters cut around the match, with [...] where it is cut */
      text: string
      before: string[]
      after: string[]
    }[]
  }[]
  /** of a search that was cut: at least */
  files_scanned: number
  /** there is more than the budgets allow */
  truncated: boolean
  elapsed_ms: number
}
export interface HookResultEvent {
  type: 'hook.result'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId?: number
    /** `UserPromptSubmit` */
    hookEvent: string
    content: string
    /** the prompt does not run */
    blocked?: boolean
    type: 'hook.result'
  }
}
export interface ImportCatalogProviderBody {
  /** Id from the directory */
  catalog_id: string
  /** Local provider id; default: the catalog_id */
  id?: string
  /** Omitted: a stored key is kept */
  api_key?: string
  /** Overrides the endpoint of the entry */
  base_url?: string
}
export interface ImportCatalogProviderData {
  provider: Provider
  /** Aliases written */
  models_imported: number
}
export interface Provider {
  id: string
  /** Wire protocol: svc, compat_chat, compat_responses, compat_messages, compat_genai, compat_cloud, or what the configuration file names */
  type: string
  base_url?: string
  /** Model alias id */
  default_model?: string
  has_api_key: boolean
  /** connected: a key or a login is there, or none is needed; error is reserved */
  status: 'connected' | 'unconfigured' | 'error'
  /** Model alias ids */
  models: string[]
}
export interface ImportRegistryBody {
  /** http(s) address of its api.json */
  url: string
  /** Bearer key; omitted: that of the earlier import */
  api_key?: string
}
export interface ImportRegistryData {
  providers: Provider[]
  /** Aliases written */
  models_imported: number
}
export interface InFlightTurn {
  turn_id: number
  /** of the message that still streams; `messages` does not have it yet */
  assistant_text: string
  /** where the text begins; with its length the offset of the next delta */
  assistant_offset: number
  /** as assistant_text */
  thinking_text: string
  /** as assistant_offset */
  thinking_offset: number
  running_tools: {
    tool_call_id: string
    name: string
    args?: unknown
    description?: string
    display?: {
      kind: string
      [k: string]: unknown
    }
    last_progress?: {
      kind: 'stdout' | 'stderr' | 'progress' | 'status'
      text?: string
      percent?: number
    }
  }[]
  current_prompt_id?: string
  /** steered into the turn; messages of its next step */
  steered_prompts?: {
    prompt_id: string
    content: ContentPart[]
  }[]
}
export interface InspectMcpServersBody {
  targets?: McpLocator[]
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface McpInspection {
  serverId: string
  locator: McpLocator
  runtimeName: string
  canonicalUrl?: string
  origin: 'global' | 'plugin'
  /** without secrets: `envKeys` and `headerKeys` are sorted names */
  config: {
    [k: string]: unknown
  }
  enabled: boolean
  editable: boolean
  authStatus: 'not-applicable' | 'bearer-token' | 'oauth-required' | 'oauth-authorized' | 'oauth-expired' | 'unavailable'
  /** ms; when it was probed */
  checkedAt?: number
  error?: string
}
export interface InstallPluginRequest {
  source: string
}
export interface ListCapabilitiesData {
  capabilities: Capability[]
}
export interface ListCatalogProvidersData {
  items: CatalogEntry[]
}
export interface ListConnectionsData {
  connections: Connection[]
}
export interface ListFilesBody {
  /** relative to the working directory of the session */
  path?: string
  depth?: number
  /** entries of the directory; those below it are not cut by it */
  limit?: number
  /** names that begin with a dot */
  show_hidden?: boolean
  follow_gitignore?: boolean
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  sort?: 'type_first' | 'name_asc' | 'name_desc' | 'mtime_desc' | 'size_desc'
  include_git_status?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface ListFilesData {
  items: FileEntry[]
  /** depth above 1: entries of the directories below, by path */
  children_by_path?: {
    [k: string]: FileEntry[]
  }
  truncated: boolean
}
export interface ListManagedMcpServersQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface ListManyFilesBody {
  paths: string[]
  depth?: number
  /** entries of the directory; those below it are not cut by it */
  limit?: number
  /** names that begin with a dot */
  show_hidden?: boolean
  follow_gitignore?: boolean
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  sort?: 'type_first' | 'name_asc' | 'name_desc' | 'mtime_desc' | 'size_desc'
  include_git_status?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface ListManyFilesData {
  /** by path, as it was asked for; depth above 1: the directories below, too */
  results: {
    [k: string]: FileEntry[]
  }
  truncated_paths: string[]
  partial_errors: {
    [k: string]: {
      code: number
      msg: string
    }
  }
}
export interface ListMcpServersData {
  servers: McpServer[]
}
export interface McpServer {
  id: string
  name: string
  transport: 'stdio' | 'http' | 'sse'
  status: 'connected' | 'connecting' | 'disconnected' | 'error'
  last_error?: string
  tool_count: number
}
export interface ListModelsData {
  items: Model[]
}
export interface Model {
  /** Owning provider; empty when it is not configured */
  provider: string
  /** Alias id: key of the model table */
  model: string
  display_name?: string
  /** Tokens */
  max_context_size: number
  capabilities?: string[]
  support_efforts?: string[]
  default_effort?: string
}
export interface ListPacksData {
  items: Pack[]
}
export interface Pack {
  name: string
  /** `Unloaded` for this run, `Disabled` by the deployment */
  state: 'Pending' | 'Activating' | 'Active' | 'Unloading' | 'Failed' | 'Unloaded' | 'Disabled'
  version: string | null
  description: string | null
  area: string | null
  /** The server was started on condition that it is active */
  required: boolean
  /** Services */
  needs: string[]
  /** Services */
  provides: string[]
  /** Needed services that nobody provides yet */
  waiting_for: string[]
  error: string | null
  faults: {
    count: number
    last: string
  } | null
  process: {
    pid: number | null
    memory_bytes: number | null
    /** How often it was started anew because it had ended by itself */
    restarts: number
  } | null
  setup_ms: number | null
  active_since: string | null
  options_schema: {
    [k: string]: unknown
  } | null
  option_defaults: {
    [k: string]: unknown
  }
  options: {
    [k: string]: unknown
  } | null
}
export interface ListPluginsData {
  plugins: Plugin[]
}
export interface Plugin {
  id: string
  displayName: string
  version?: string
  enabled: boolean
  state: 'ok' | 'error'
  skillCount: number
  mcpServerCount: number
  enabledMcpServerCount: number
  hookCount: number
  commandCount: number
  hasErrors: boolean
  source: 'local-path' | 'zip-url' | 'repo'
  originalSource?: string
  repo?: {
    owner: string
    repo: string
    ref: {
      kind: 'branch' | 'tag' | 'sha'
      value: string
    }
    installedSha?: string
  }
  /** what is wrong with its files */
  diagnostics?: {
    severity: 'error' | 'warn' | 'info'
    message: string
  }[]
}
export interface ListPromptsData {
  active: Prompt | null
  queued: Prompt[]
}
export interface Prompt {
  prompt_id: string
  user_message_id: string
  status: 'running' | 'queued' | 'blocked'
  content: ContentPart[]
  /** ISO 8601, UTC */
  created_at: string
}
export interface ListProvidersData {
  items: Provider[]
}
export interface ListSessionApprovalsData {
  items: Approval[]
}
export interface ListSessionApprovalsQuery {
  status: 'pending'
}
export interface ListSessionChildrenData {
  items: Session[]
  has_more: boolean
}
export interface Session {
  id: string
  workspace_id: string
  /** empty when untitled */
  title: string
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  updated_at: string
  archived: boolean
  /** ISO 8601, UTC */
  archived_at?: string
  busy: boolean
  main_turn_active: boolean
  pending_interaction: PendingInteraction
  last_turn_reason?: TurnReason
  last_prompt?: string
  metadata: SessionMetadata
  agent_config: {
    /** alias id; empty until one is bound */
    model: string
  }
  usage: SessionUsage
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface SessionMetadata {
  /** absolute path of the working directory */
  cwd: string
  [k: string]: unknown
}
export interface SessionUsage {
  /** uncached input */
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_creation_tokens: number
  context_tokens: number
  context_limit?: number
  total_cost_usd?: number
  turn_count?: number
}
export interface ListSessionChildrenQuery {
  before_id?: string
  after_id?: string
  page_size?: number
  busy?: boolean
}
export interface SessionItemPage {
  items: (SessionItem | SessionMark)[]
  /** of the filtered set, all pages */
  total: number
  has_more: boolean
  next_page_token: string | null
}
export interface SessionItem {
  id: string
  workspace: SessionPlace
  meta: {
    title: string | null
    last_prompt: string | null
    /** epoch milliseconds */
    created_at: number
    /** epoch milliseconds */
    updated_at: number
    archived: boolean
    archived_at: number | null
  }
  activity: {
    status: SessionActivity
  }
  git?: SessionGit
}
export interface SessionPlace {
  id: string
  cwd: string | null
}
export interface SessionGit {
  branch: string | null
  pull_request: {
    number: number
    state: 'open' | 'closed' | 'merged'
    url: string
  } | null
}
export interface SessionMark {
  id: string
  archived: boolean
}
export interface SessionGroupPage {
  groups: SessionGroup[]
  /** of the filtered set, all pages */
  total: number
  has_more: boolean
  next_page_token: string | null
}
export interface SessionGroup {
  workspace: SessionPlace
  sessions: (SessionItem | SessionMark)[]
  total: number
}
export interface ListSessionItemsQuery {
  /** any of these; unknown ones match nothing */
  'workspace.id'?: string[]
  'activity.status'?: SessionActivity[]
  /** epoch milliseconds, inclusive */
  'meta.updated_after'?: number
  /** epoch milliseconds, inclusive */
  'meta.updated_before'?: number
  'meta.archived'?: 'true' | 'false' | 'all'
  'meta.has_prompt'?: 'true' | 'false'
  view?: 'flat' | 'by_workspace'
  /** by_workspace only; default 5, at most 100 without the projection */
  'group.page_size'?: number
  sort?: 'meta.updated_at_desc' | 'meta.updated_at_asc' | 'meta.created_at_desc'
  /** `git` */
  include?: string
  /** `id,archived` */
  fields?: string
  /** default 50, at most 100 without the projection */
  page_size?: number
  page_token?: string
  /** number of a page; excludes page_token */
  page?: number
}
export interface ListSessionMessagesData {
  items: Message[]
  has_more: boolean
}
export interface Message {
  id: string
  session_id: string
  role: MessageRole
  content: ContentPart[]
  /** ISO 8601, UTC */
  created_at: string
  prompt_id?: string
  parent_message_id?: string
  /** `origin` tells why the message exists */
  metadata?: {
    [k: string]: unknown
  }
}
export interface ListSessionMessagesQuery {
  before_id?: string
  after_id?: string
  page_size?: number
  role?: MessageRole
}
export interface ListSessionQuestionsData {
  items: Question[]
}
export interface Question {
  /** question_<uuid> */
  question_id: string
  session_id: string
  /** 0-based turn number */
  turn_id?: number
  tool_call_id?: string
  questions: QuestionItem[]
  /** ISO 8601, UTC */
  created_at: string
  /** the question is withdrawn at this instant */
  expires_at?: string
}
export interface QuestionItem {
  /** `q_<item>`, from 0 */
  id: string
  question: string
  header?: string
  body?: string
  options: QuestionOption[]
  multi_select?: boolean
  /** a text of the user is an answer, too */
  allow_other?: boolean
  other_label?: string
  other_description?: string
}
export interface QuestionOption {
  /** `opt_<item>_<option>`, from 0 */
  id: string
  label: string
  description?: string
}
export interface ListSessionQuestionsQuery {
  status: 'pending'
}
export interface ListSessionSkillsData {
  skills: Skill[]
}
export interface Skill {
  name: string
  description: string
  path: string
  source: 'project' | 'user' | 'extra' | 'builtin'
  /** `reference` cannot be activated */
  type?: 'prompt' | 'inline' | 'flow' | 'reference'
  /** the model does not see it */
  disable_model_invocation?: boolean
}
export interface ListSessionTasksData {
  items: Task[]
}
export interface Task {
  id: string
  session_id: string
  kind: 'bash' | 'subagent' | 'tool'
  description: string
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  started_at?: string
  /** ISO 8601, UTC */
  completed_at?: string
  command?: string
  model?: string
  thinking_effort?: string
  agent_id?: string
  subagent_type?: string
  /** the tool call that started it */
  parent_tool_call_id?: string
  /** false: the call that started it waits for it, or waited to its end */
  run_in_background: boolean
  /** end of its output */
  output_preview?: string
  /** length of output_preview in UTF-8 */
  output_bytes?: number
}
export interface ListSessionTasksQuery {
  status?: 'running' | 'completed' | 'failed' | 'cancelled'
}
export interface ListSessionTerminalsData {
  items: Terminal[]
}
export interface Terminal {
  /** term_<ULID> */
  id: string
  session_id: string
  /** absolute */
  cwd: string
  shell: string
  cols: number
  rows: number
  status: 'running' | 'exited'
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  exited_at?: string
  exit_code?: number | null
}
export interface ListSessionTranscriptOpsData {
  agent_id: string
  batches: TranscriptBatch[]
  latest_seq: number
  /** false: the past is gone; read the transcript again */
  complete: boolean
}
export interface TranscriptBatch {
  seq: number
  ops: TranscriptOp[]
}
export interface TranscriptTurnHead {
  kind: 'turn'
  turnId: string
  ordinal: number
  state: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  origin: TranscriptOrigin
  prompt?: string
  attachmentIds?: string[]
  /** the prompt that began it */
  triggerPromptId?: string
  /** ISO 8601, UTC */
  startedAt?: string
  /** ISO 8601, UTC */
  endedAt?: string
  usage?: TranscriptTurnUsage
  durationMs?: number
  error?: string
}
export interface TranscriptOrigin {
  kind: 'user' | 'cron' | 'task' | 'hook' | 'compaction' | 'side' | 'other'
  taskId?: string
  /** the origin as it is on record */
  payload?: {
    kind: string
    [k: string]: unknown
  }
}
export interface TranscriptTurnUsage {
  inputTokens?: number
  outputTokens?: number
  cachedTokens?: number
  cost?: number
}
export interface TranscriptStepHead {
  kind: 'step'
  stepId: string
  turnId: string
  ordinal: number
  state: 'running' | 'completed' | 'interrupted' | 'failed'
  /** ISO 8601, UTC */
  startedAt?: string
  /** ISO 8601, UTC */
  endedAt?: string
  usage?: TokenUsage
  finishReason?: string
  timing?: {
    llmFirstTokenLatencyMs?: number
    llmStreamDurationMs?: number
  }
  retry?: TranscriptRetry
  endReason?: string
  endMessage?: string
}
export interface TranscriptRetry {
  failedAttempt: number
  nextAttempt: number
  maxAttempts: number
  delayMs: number
  errorName: string
  errorMessage: string
  statusCode?: number
}
export interface TranscriptMarker {
  kind: 'marker'
  markerId: string
  /** compaction, undo, goal, plan.enter, plan.exit, plan.revision, swarm.enter, swarm.exit, skill, cron.fired, notice, hook, interruption */
  marker: string
  payload?: {
    [k: string]: unknown
  }
  /** ISO 8601, UTC */
  at?: string
}
export interface TranscriptTaskRef {
  kind: 'taskref'
  refId: string
  taskId: string
  /** ISO 8601, UTC */
  at?: string
}
export interface TranscriptTask {
  taskId: string
  kind: 'shell' | 'subagent' | 'tool' | 'other'
  state: 'running' | 'completed' | 'failed' | 'timed_out' | 'killed' | 'lost'
  detached: boolean
  description?: string
  agentId?: string
  model?: string
  thinkingEffort?: string
  outputTail: string
  /** ISO 8601, UTC */
  startedAt?: string
  /** ISO 8601, UTC */
  endedAt?: string
  resultSummary?: string
  error?: string
  stateReason?: string
  usage?: TokenUsage
}
export interface TranscriptInteraction {
  interactionId: string
  /** approval, question */
  interactionKind: string
  toolCallId?: string
  state: 'pending' | 'approved' | 'rejected' | 'cancelled' | 'answered' | 'dismissed'
  request?: unknown
  response?: unknown
}
export interface TranscriptAttachment {
  attachmentId: string
  mediaType: string
  name?: string
  size?: number
  source?: {
    kind: 'url' | 'file' | 'session_media'
    url?: string
    fileId?: string
  }
  placeholder?: string
}
export interface TranscriptTodo {
  todoId: string
  items: {
    title: string
    status: 'pending' | 'in_progress' | 'done'
  }[]
  /** ISO 8601, UTC */
  updatedAt?: string
}
export interface TranscriptPrompt {
  promptId: string
  status: 'running' | 'queued' | 'blocked' | 'completed' | 'failed' | 'aborted'
  userMessageId?: string
  content?: {
    type: string
    [k: string]: unknown
  }[]
  /** ISO 8601, UTC */
  createdAt: string
  /** ISO 8601, UTC */
  finishedAt?: string
  /** ISO 8601, UTC */
  steeredAt?: string
}
export interface TranscriptGoal {
  objective: string
  status: string
  completionCriterion?: string
  budgetUsed?: number
  budgetLimit?: number
}
/**
 * what the agent is set to, and what it does now
 *
 */
export interface TranscriptAgentState {
  model?: string
  thinkingEffort?: string
  usage?: AgentUsage
  contextTokens?: number
  maxContextTokens?: number
  contextUsage?: number
  permission?: string
  phase?: {
    kind: string
    [k: string]: unknown
  }
}
export interface ListSessionTranscriptOpsQuery {
  /** plain id */
  agent_id: string
  since_seq: number
}
export interface ListSessionTranscriptUserMessagesData {
  agents: {
    agent_id: string
    messages: TranscriptUserMessage[]
    attachments: TranscriptAttachment[]
  }[]
}
export interface TranscriptUserMessage {
  turn_id: string
  ordinal: number
  state: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  origin: TranscriptOrigin
  /** empty when the prompt was attachments only */
  prompt: string
  attachment_ids?: string[]
  /** ISO 8601, UTC */
  started_at?: string
}
export interface ListSessionTranscriptUserMessagesQuery {
  /** plain id */
  agent_id?: string
}
export interface ListSessionWarningsData {
  warnings: {
    /** `agents-md-oversized` */
    code: string
    message: string
    severity: 'info' | 'warning' | 'error'
  }[]
}
export interface ListSessionsData {
  items: Session[]
  has_more: boolean
}
export interface ListSessionsQuery {
  before_id?: string
  after_id?: string
  page_size?: number
  busy?: boolean
  include_archive?: boolean
  archived_only?: boolean
  exclude_empty?: boolean
  workspace_id?: string
}
export interface ListToolsData {
  tools: Tool[]
}
export interface Tool {
  name: string
  description: string
  /** always null */
  input_schema: null
  source: 'builtin' | 'skill' | 'mcp'
  /** the part between `mcp__` and the next `__` of the name */
  mcp_server_id?: string
  /** verdict of the tool policies for the main agent */
  active?: boolean
}
export interface ListToolsQuery {
  session_id?: string
}
export interface ListWorkspaceSkillsData {
  skills: Skill[]
}
export interface ListWorkspacesData {
  items: Workspace[]
}
export interface Workspace {
  /** wd_<slug>_<hash12> */
  id: string
  /** Absolute path, as it was first registered */
  root: string
  name: string
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  last_opened_at: string
  /** Archived sessions too */
  session_count: number
}
export interface LogoutBody {
  provider?: string
}
export interface LogoutData {
  logged_out: true
  provider: string
}
export interface MakeDirectoryBody {
  /** relative to the working directory of the session */
  path: string
  recursive?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface MakeHostDirectoryBody {
  /** absolute */
  path: string
}
export interface MakeHostDirectoryData {
  path: string
}
export interface McpServerStatusEvent {
  type: 'mcp.server.status'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    server: {
      name: string
      transport: 'stdio' | 'http' | 'sse'
      status: 'pending' | 'connected' | 'failed' | 'disabled' | 'needs-auth' | 'removed'
      toolCount: number
      error?: string
    }
    type: 'mcp.server.status'
  }
}
export interface ModelCatalogChangedEvent {
  type: 'event.model_catalog.changed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    type: 'event.model_catalog.changed'
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
  } & RefreshReport
}
export interface RefreshReport {
  changed: {
    provider_id: string
    provider_name: string
    /** Aliases */
    added: number
    /** Aliases */
    removed: number
  }[]
  /** Provider ids */
  unchanged: string[]
  failed: {
    provider: string
    reason: string
  }[]
}
export interface NameHit {
  /** relative to the workspace, with slashes */
  path: string
  name: string
  /** by itself: a link stays a link */
  kind: 'file' | 'directory' | 'symlink'
  score: number
  /** characters of the path that match */
  match_positions: number[]
}
export interface OpenFileBody {
  /** relative to the working directory of the session */
  path: string
  /** where the application can show one */
  line?: number
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface OpenFileData {
  opened: true
}
export interface OpenFileInBody {
  app_id: 'finder' | 'editor_a' | 'editor_b' | 'terminal_app' | 'terminal'
  /** relative to the working directory of the session */
  path: string
  /** where the application can show one */
  line?: number
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface OpenFileInData {
  opened: true
}
export interface PlanRevisionEvent {
  type: 'plan.revision'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** names the plan file: three words */
    id: string
    version: number
    /** below the directory of the agent: `plan/<id>/v<version>.md` */
    path: string
    /** of the bytes, hex */
    sha256: string
    bytes: number
    type: 'plan.revision'
  }
}
export interface PluginChangedEvent {
  type: 'event.plugin.changed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    type: 'event.plugin.changed'
  }
}
export interface PluginCommandActivatedEvent {
  type: 'plugin_command.activated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    activationId: string
    pluginId: string
    commandName: string
    commandArgs?: string
    trigger: 'user-slash'
    type: 'plugin_command.activated'
  }
}
export interface PromptAbortedEvent {
  type: 'prompt.aborted'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    promptId: string
    abortedAt: string
    type: 'prompt.aborted'
  }
}
export interface PromptCompletedEvent {
  type: 'prompt.completed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    promptId: string
    finishedAt: string
    reason?: 'completed' | 'failed' | 'blocked'
    type: 'prompt.completed'
  }
}
export interface PromptQueuedEvent {
  type: 'prompt.queued'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    promptId: string
    content: ContentPart[]
    queueLength: number
    type: 'prompt.queued'
  }
}
export interface PromptSteeredEvent {
  type: 'prompt.steered'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    activePromptId: string
    promptIds: string[]
    content: ContentPart[]
    steeredAt: string
    type: 'prompt.steered'
  }
}
export interface PromptSubmittedEvent {
  type: 'prompt.submitted'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    promptId: string
    userMessageId: string
    status: 'running' | 'queued' | 'blocked'
    content: ContentPart[]
    createdAt: string
    type: 'prompt.submitted'
  }
}
export interface ProviderWithKey {
  id: string
  /** Wire protocol: svc, compat_chat, compat_responses, compat_messages, compat_genai, compat_cloud, or what the configuration file names */
  type: string
  base_url?: string
  /** Model alias id */
  default_model?: string
  has_api_key: boolean
  /** connected: a key or a login is there, or none is needed; error is reserved */
  status: 'connected' | 'unconfigured' | 'error'
  /** Model alias ids */
  models: string[]
  /** Present when one is stored */
  api_key?: string
}
export interface PullRequest {
  number: number
  state: 'open' | 'merged' | 'closed' | 'draft'
  url: string
}
export interface QuestionAnsweredEvent {
  type: 'event.question.answered'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    question_id: string
    /** question text to answer text; skipped items are absent */
    answers: {
      [k: string]: string
    }
    /** ISO 8601, UTC */
    resolved_at: string
    type: 'event.question.answered'
  }
}
export interface QuestionDismissedEvent {
  type: 'event.question.dismissed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    question_id: string
    /** ISO 8601, UTC */
    dismissed_at: string
    type: 'event.question.dismissed'
  }
}
export interface QuestionRequestedEvent {
  type: 'event.question.requested'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    type: 'event.question.requested'
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
  } & Question
}
export interface ReadFileBody {
  /** relative to the working directory of the session */
  path: string
  /** bytes of the content as it is returned */
  offset?: number
  /** bytes; a character that begins in them is whole */
  length?: number
  encoding?: 'auto' | 'utf-8' | 'base64'
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface ReadFileData {
  path: string
  content: string
  /** of the content */
  encoding: 'utf-8' | 'base64'
  /** bytes of the file */
  size: number
  /** more follows */
  truncated: boolean
  etag: string
  mime: string
  language_id?: string
  /** lines of the content; text only */
  line_count?: number
  is_binary: boolean
}
export interface ReadGitStatusBody {
  /**
   * only entries at these paths and below them; empty: all
   *
   */
  paths?: string[]
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface ReadGitStatusData {
  /** empty: none is checked out */
  branch: string
  ahead: number
  behind: number
  /** by path; an untracked directory is one entry, with a slash at its end */
  entries: {
    [k: string]: 'clean' | 'modified' | 'added' | 'deleted' | 'renamed' | 'untracked' | 'ignored' | 'conflicted'
  }
  /** lines since the last commit */
  additions: number
  deletions: number
  pullRequest: PullRequest | null
}
export interface ReadHomeData {
  home: string
  /** of the registered workspaces, the eight that were opened last, the latest first */
  recent_roots: string[]
}
export interface ReadHostFileQuery {
  /** absolute */
  path: string
}
export interface ReadManagedMcpServerQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface ReadMcpAuthStatusesQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
  /** true: every candidate is asked; false: nobody; absent: those of which nothing is known */
  verify?: 'true' | 'false'
}
export interface RefreshPacksData {
  loaded: string[]
  unloaded: string[]
  reloaded: string[]
  warnings: string[]
  items: Pack[]
}
export interface RegisterWorkspaceBody {
  /** Absolute path of an existing directory */
  root: string
  name?: string
}
export interface RemoveItemGuiStoreBody {
  key: string
}
export interface RemovePluginData {
  ok: boolean
}
export interface ReplaceProviderData {
  provider: Provider
}
export interface ReplaceProviderRequest {
  /** Letters, digits, -, _ and spaces; begins with a letter or digit */
  new_id?: string
  /** Omitted: kept; empty: cleared; else replaced */
  api_key?: string
  type: ProviderType
  /** Trimmed; empty: none; no placeholder of an environment variable */
  base_url?: string
  /** One of models[].model */
  default_model?: string
  /**
   * No duplicate model
   *
   */
  models: ModelDeclaration[]
}
export interface ResetMcpAuthQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface ResolveApprovalData {
  resolved: true
  /** ISO 8601, UTC */
  resolved_at: string
}
export interface RestartMcpServerData {
  restarting: boolean
}
export interface ResyncRequiredFrame {
  type: 'resync_required'
  timestamp: string
  payload: {
    session_id: string
    reason: 'buffer_overflow' | 'session_recreated' | 'epoch_changed'
    current_seq: number
    epoch?: string
  }
}
export interface RevealFileBody {
  /** relative to the working directory of the session */
  path: string
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface RevealFileData {
  revealed: true
}
export interface RuntimeBinding {
  workspace_id: string
  runtime_id: string
}
export interface SearchBody {
  query: string
  /** literal: exact substring, newest first */
  mode?: 'terms' | 'literal'
  /** terms mode only */
  op?: 'AND' | 'OR'
  container?: {
    session_id?: string
    agent_id?: string
  }
  role?: 'user' | 'assistant' | 'title'
  /** epoch milliseconds, inclusive */
  start_time?: number
  /** epoch milliseconds, inclusive */
  end_time?: number
  /** terms mode only */
  sort?: 'score' | 'time_desc' | 'time_asc'
  page_size?: number
  page_token?: string
}
export interface SearchData {
  items: SearchHit[]
  has_more: boolean
  page_token?: string
  index_state: SearchIndexState
  /** live: the session of the container, which is loaded here, as it is now */
  source: 'index' | 'live'
  /** a budget was spent before everything was seen */
  incomplete?: 'candidate_cap' | 'postings_budget' | 'deadline'
}
export interface SearchHit {
  session_id: string
  workspace_id: string
  session_title: string
  /** empty for titles */
  agent_id: string
  role: 'user' | 'assistant' | 'title'
  /** 80 characters on both sides of the first match, `…` where the text goes on */
  snippet: string
  /** epoch milliseconds */
  time: number
  turn?: number
  /** `t<turn>.<step>`, of assistant replies */
  step_id?: string
  /** orders hits of one query; 0 in literal mode */
  score: number
}
export interface SearchIndexState {
  /** readonly: another server of this home keeps the index */
  state: 'building' | 'ready' | 'readonly'
  indexed_sessions: number
  total_sessions: number
  documents: number
  /** not everything that is on disk was searched */
  stale?: boolean
  /** the last failure to read something */
  degraded?: string
}
export interface SearchNamesBody {
  /** empty: the top level */
  query: string
  limit?: number
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  include_globs?: string[]
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  follow_gitignore?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface SearchNamesData {
  /** by score, equal ones by path */
  items: NameHit[]
  /** there are more */
  truncated: boolean
}
export interface SearchWorkspaceNamesBody {
  /** id, or absolute directory, which is registered on the spot */
  workspace: string
  /** empty: the top level */
  query: string
  limit?: number
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  include_globs?: string[]
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  follow_gitignore?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface SearchWorkspaceNamesData {
  /** by score, equal ones by path */
  items: NameHit[]
  /** there are more */
  truncated: boolean
}
export interface ServerCapabilities {
  websocket: true
  file_upload: true
  fs_query: true
  mcp: true
  tasks: true
  terminal: true
}
export interface ServerHelloFrame {
  type: 'server_hello'
  timestamp: string
  payload: {
    ws_connection_id: string
    protocol_version: 2
    max_event_buffer_size: number
    capabilities: {
      event_batching: boolean
      compression: boolean
    }
  }
}
export interface ServerMeta {
  server_version: string
  capabilities: ServerCapabilities
  /** ULID of this server instance */
  server_id: string
  /** ISO 8601, UTC */
  started_at: string
  open_in_apps: string[]
  dangerous_bypass_auth: boolean
  backend: 'v1' | 'v2'
  experimental_flags: {
    [k: string]: boolean
  }
  features: Feature[]
  web_title?: string
}
export interface SessionArchivedEvent {
  type: 'event.session.archived'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    workspace_id: string
    type: 'event.session.archived'
  }
}
export interface SessionBatch {
  /** in the order in which each id came first */
  results: (
    | {
        id: string
        ok: true
      }
    | {
        id: string
        ok: false
        error: {
          code: number
          message: string
        }
      }
  )[]
  succeeded: number
  failed: number
}
export interface SessionCreatedEvent {
  type: 'event.session.created'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    session: Session
    type: 'event.session.created'
  }
}
export interface SessionIds {
  /**
   * at most 5000 different ones
   *
   */
  ids: string[]
}
export interface SessionMetaUpdatedEvent {
  type: 'session.meta.updated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    title?: string
    patch: {
      title?: string
      isCustomTitle?: boolean
      lastPrompt?: string
    }
    type: 'session.meta.updated'
  }
}
/**
 * Packs may add fields
 *
 */
export interface SessionSnapshot {
  as_of_seq: number
  epoch: string
  session: Session
  messages: {
    items: Message[]
    has_more: boolean
  }
  in_flight_turn: InFlightTurn | null
  /** in the foreground of the present or last turn */
  subagents: Subagent[]
  pending_approvals: Approval[]
  pending_questions: (
    | Question
    | {
        [k: string]: unknown
      }
  )[]
  last_failure?: TurnFailure
  [k: string]: unknown
}
export interface Subagent {
  /** id of the agent */
  id: string
  session_id: string
  kind: 'subagent'
  description: string
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  started_at?: string
  /** ISO 8601, UTC */
  completed_at?: string
  output_preview?: string
  model?: string
  thinking_effort?: string
  subagent_phase: 'queued' | 'working' | 'suspended' | 'completed' | 'failed'
  subagent_type?: string
  parent_tool_call_id?: string
  suspended_reason?: string
  /** place among the agents of one swarm, from 1 */
  swarm_index?: number
  run_in_background?: boolean
}
/**
 * newest failure of the main agent; absent when a turn has completed since
 *
 */
export interface TurnFailure {
  /** ISO 8601, UTC */
  at: string
  turn_id: number
  /** as in the event `error` */
  code: string
  message: string
  name?: string
  retryable: boolean
  /** HTTP status of the provider */
  status?: number
  provider_id?: string
  /** alias */
  model?: string
  /** the turn goes on with another attempt, `delay_ms` after `at` */
  retry?: {
    failed_attempt: number
    max_attempts: number
    delay_ms: number
  }
}
/**
 * Packs may add fields
 *
 */
export interface SessionStatus {
  busy: boolean
  model?: string
  /** empty until a model is bound */
  thinking_level: string
  permission: string
  plan_mode: boolean
  swarm_mode: boolean
  context_tokens: number
  max_context_tokens?: number
  context_usage?: number
  last_failure?: TurnFailure
  [k: string]: unknown
}
export interface SessionStatusChangedEvent {
  type: 'event.session.status_changed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    status: WorkStatus
    previous_status: WorkStatus
    /** the prompt of the main agent's turn */
    current_prompt_id?: string
    type: 'event.session.status_changed'
  }
}
export interface SessionWorkChangedEvent {
  type: 'event.session.work_changed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    busy: boolean
    main_turn_active: boolean
    pending_interaction: PendingInteraction
    last_turn_reason?: TurnReason
    type: 'event.session.work_changed'
  }
}
export interface SetDefaultModelData {
  default_model: string
  model: Model
}
export interface SetItemGuiStoreBody {
  key: string
  value: string
}
export interface ShellCompletedEvent {
  type: 'shell.completed'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** the tool call that runs it */
    commandId: string
    /** its task, where there are tasks */
    taskId?: string
    isError: boolean
    type: 'shell.completed'
  }
}
export interface ShellOutputEvent {
  type: 'shell.output'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** the tool call that runs it */
    commandId: string
    /** its task, where there are tasks */
    taskId?: string
    update: ToolProgressUpdate
    type: 'shell.output'
  }
}
export interface ToolProgressUpdate {
  kind: 'stdout' | 'stderr' | 'progress' | 'status' | 'custom'
  text?: string
  percent?: number
  customKind?: string
  customData?: unknown
  replace?: boolean
}
export interface ShellStartedEvent {
  type: 'shell.started'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** the tool call that runs it */
    commandId: string
    /** its task, where there are tasks */
    taskId?: string
    type: 'shell.started'
  }
}
export interface ShutdownData {
  ok: true
}
export interface SkillActivatedEvent {
  type: 'skill.activated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    activationId: string
    skillName: string
    skillArgs?: string
    trigger: 'user-slash' | 'model-tool' | 'nested-skill'
    skillType?: string
    skillPath?: string
    skillSource?: 'project' | 'user' | 'extra' | 'builtin'
    type: 'skill.activated'
  }
}
export interface StartLoginBody {
  provider?: string
  /** Overrides the region for this flow, unless hosts are set by the environment */
  region?: 'mainland-cn' | 'global'
}
export interface StatFileBody {
  /** relative to the working directory of the session */
  path: string
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface StatManyFilesBody {
  paths: string[]
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
}
export interface StatManyFilesData {
  /** by path, as it was asked for */
  entries: {
    [k: string]: FileEntry | null
  }
}
export interface SteerPromptsBody {
  prompt_ids: string[]
}
export interface SteerResult {
  steered: boolean
  prompt_ids: string[]
}
export interface SubagentCompletedEvent {
  type: 'subagent.completed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** id of the agent */
    subagentId: string
    resultSummary: string
    usage?: TokenUsage
    contextTokens?: number
    type: 'subagent.completed'
  }
}
export interface SubagentFailedEvent {
  type: 'subagent.failed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** id of the agent */
    subagentId: string
    error: string
    type: 'subagent.failed'
  }
}
export interface SubagentSpawnedEvent {
  type: 'subagent.spawned'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** id of the agent */
    subagentId: string
    /** its profile */
    subagentName: string
    /** the call that started it; empty: none */
    parentToolCallId: string
    parentAgentId: string
    description?: string
    /** place among the agents of one swarm, from 1 */
    swarmIndex?: number
    runInBackground: boolean
    model?: string
    thinkingEffort?: string
    taskId?: string
    type: 'subagent.spawned'
  }
}
export interface SubagentStartedEvent {
  type: 'subagent.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** id of the agent */
    subagentId: string
    type: 'subagent.started'
  }
}
export interface SubagentSuspendedEvent {
  type: 'subagent.suspended'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** id of the agent */
    subagentId: string
    reason: string
    type: 'subagent.suspended'
  }
}
export interface SubmitPromptRequest {
  content: ContentPart[]
  agent_id?: string
  /** chosen by the client, for submitting again without a second run */
  prompt_id?: string
  skills?: {
    name: string
    args?: string
  }[]
  profile?: string
  model?: string
  thinking?: string
  permission_mode?: 'manual' | 'yolo' | 'auto'
  disabled_tools?: string[]
  /** not applied */
  metadata?: {
    [k: string]: unknown
  }
  /** not applied */
  plan_mode?: {
    [k: string]: unknown
  }
  /** not applied */
  swarm_mode?: {
    [k: string]: unknown
  }
  /** not applied */
  goal_objective?: {
    [k: string]: unknown
  }
  /** not applied */
  goal_control?: {
    [k: string]: unknown
  }
}
export interface SubscribeAck {
  accepted: string[]
  not_found: string[]
  resync_required: string[]
  cursors: {
    [k: string]: Watermark
  }
}
export interface SubscribeRequest {
  session_ids: string[]
  /** Last durable event applied, per session */
  cursors?: {
    [k: string]: Cursor
  }
  /** Whom to show, per session; empty shows all */
  agent_filter?: {
    [k: string]: string[]
  }
}
export interface SubscribeV2Request {
  session_id: string
  transcript: {
    [k: string]: 'off' | 'turn' | 'block' | 'delta'
  }
  transcript_since?: {
    [k: string]: number
  }
}
export interface SuggestNamesBody {
  /** id, or absolute directory, which is registered on the spot */
  workspace: string
  /** empty: the top level */
  query: string
  limit?: number
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  include_globs?: string[]
  /**
   * without a slash they mean names at any depth; what lies in a directory that fits, fits, too
   *
   */
  exclude_globs?: string[]
  follow_gitignore?: boolean
  /** where it is done; `local` is the only runtime */
  runtime_id?: string
  show_hidden?: boolean
}
export interface SuggestNamesData {
  /** by score, equal ones by path */
  items: NameHit[]
  /** there are more */
  truncated: boolean
}
export interface TaskNotifiedEvent {
  type: 'task.notified'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** `task.` and the status */
    notificationType: string
    sourceKind: 'background_task'
    /** the task */
    sourceId: string
    title: string
    severity: 'info' | 'warning'
    /** how it ended */
    body: string
    type: 'task.notified'
  }
}
export interface TaskStartedEvent {
  type: 'task.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    info: TaskInfo
    type: 'task.started'
  }
}
export interface TaskTerminatedEvent {
  type: 'task.terminated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    info: TaskInfo
    type: 'task.terminated'
  }
}
export interface TerminalAttachAck {
  attached: true
  /** frames that were sent first */
  replayed: number
}
export interface TerminalAttachRequest {
  session_id: string
  terminal_id: string
  /** output up to here is known */
  since_seq?: number
}
export interface TerminalCloseAck {
  closed: true
}
export interface TerminalCloseRequest {
  session_id: string
  terminal_id: string
}
export interface TerminalDetachAck {
  detached: true
}
export interface TerminalDetachRequest {
  session_id: string
  terminal_id: string
}
export interface TerminalExitFrame {
  type: 'terminal_exit'
  timestamp?: string
  session_id: string
  terminal_id: string
  payload: {
    exit_code?: number | null
  }
}
export interface TerminalInputAck {
  accepted: true
}
export interface TerminalInputRequest {
  session_id: string
  terminal_id: string
  /** raw keystrokes */
  data: string
}
export interface TerminalOutputFrame {
  type: 'terminal_output'
  timestamp?: string
  seq: number
  session_id: string
  terminal_id: string
  payload: {
    data: string
  }
}
export interface TerminalResizeAck {
  resized: true
}
export interface TerminalResizeRequest {
  session_id: string
  terminal_id: string
  cols: number
  rows: number
}
export interface TestMcpServerBody {
  name?: string
  server?: McpServerInput
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface TestMcpServerData {
  success: boolean
  output: string
}
export interface ThinkingDeltaEvent {
  type: 'thinking.delta'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    delta: string
    type: 'thinking.delta'
  }
  /** length of the streamed text before this chunk, UTF-16 units */
  offset?: number
}
export interface ToolCallDeltaEvent {
  type: 'tool.call.delta'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    toolCallId: string
    name?: string
    argumentsPart?: string
    type: 'tool.call.delta'
  }
}
export interface ToolCallStartedEvent {
  type: 'tool.call.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    toolCallId: string
    name: string
    args: {
      [k: string]: unknown
    }
    description?: string
    display?: {
      kind: string
      [k: string]: unknown
    }
    /** where the answer of the step ends: the offset behind it */
    assistantEnd?: number
    /** where the thinking of the step ends: the offset behind it */
    thinkingEnd?: number
    type: 'tool.call.started'
  }
}
export interface ToolListUpdatedEvent {
  type: 'tool.list.updated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    reason: 'mcp.connected' | 'mcp.disconnected' | 'mcp.failed'
    serverName: string
    type: 'tool.list.updated'
  }
}
export interface ToolProgressEvent {
  type: 'tool.progress'
  /** number of the last durable event */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  volatile: true
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    toolCallId: string
    update: ToolProgressUpdate
    type: 'tool.progress'
  }
}
export interface ToolResultEvent {
  type: 'tool.result'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    toolCallId: string
    output: string | ContentPart[]
    isError?: true
    synthetic?: true
    type: 'tool.result'
  }
}
export interface TranscriptAgent {
  agentId: string
  type?: 'main' | 'sub' | 'independent'
  parentAgentId?: string
  label?: string
  /** ISO 8601, UTC */
  createdAt?: string
  /** ISO 8601, UTC */
  disposedAt?: string
}
export interface TranscriptMeta {
  goal?: TranscriptGoal
  modes?: {
    plan?: {
      reviewPath?: string
      version?: number
    }
    swarm?: {
      trigger?: string
    }
  }
  /** turn: one runs; absent: none ever did */
  activity?: 'idle' | 'turn'
  agent?: TranscriptAgentState
}
export interface TranscriptOpsFrame {
  type: 'transcript.ops'
  timestamp?: string
  /** number of the last durable event of the session */
  seq: number
  epoch?: string
  volatile: true
  session_id: string
  payload: {
    type: string
    agent_id: string
    seq: number
    ops: TranscriptOp[]
  }
}
export interface TranscriptPage {
  agent_id: string
  /** turns of the page with the markers and task references behind each, oldest first */
  items: (TranscriptTurn | TranscriptMarker | TranscriptTaskRef)[]
  has_more: boolean
  tasks: TranscriptTask[]
  interactions: TranscriptInteraction[]
  attachments: TranscriptAttachment[]
  todos: TranscriptTodo[]
  prompts: TranscriptPrompt[]
  meta: TranscriptMeta
  agents: TranscriptAgent[]
  /** ids */
  pending_interactions: string[]
  /** everything up to this op batch is in it; of loaded sessions only */
  seq?: number
}
export interface TranscriptTurn {
  kind: 'turn'
  turnId: string
  ordinal: number
  state: 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  origin: TranscriptOrigin
  prompt?: string
  attachmentIds?: string[]
  /** the prompt that began it */
  triggerPromptId?: string
  /** ISO 8601, UTC */
  startedAt?: string
  /** ISO 8601, UTC */
  endedAt?: string
  usage?: TranscriptTurnUsage
  durationMs?: number
  error?: string
  steps: TranscriptStep[]
}
export interface TranscriptStep {
  kind: 'step'
  stepId: string
  turnId: string
  ordinal: number
  state: 'running' | 'completed' | 'interrupted' | 'failed'
  /** ISO 8601, UTC */
  startedAt?: string
  /** ISO 8601, UTC */
  endedAt?: string
  usage?: TokenUsage
  finishReason?: string
  timing?: {
    llmFirstTokenLatencyMs?: number
    llmStreamDurationMs?: number
  }
  retry?: TranscriptRetry
  endReason?: string
  endMessage?: string
  frames: TranscriptFrame[]
}
export interface TranscriptResetFrame {
  type: 'transcript.reset'
  timestamp?: string
  /** number of the last durable event of the session */
  seq: number
  epoch?: string
  volatile: true
  session_id: string
  payload: {
    type: string
    agent_id: string
    seq: number
    snapshot: TranscriptSnapshot
    has_more_older: boolean
  }
}
export interface TranscriptSnapshot {
  items: (TranscriptTurn | TranscriptMarker | TranscriptTaskRef)[]
  tasks: TranscriptTask[]
  interactions: TranscriptInteraction[]
  attachments: TranscriptAttachment[]
  todos: TranscriptTodo[]
  prompts: TranscriptPrompt[]
  meta: TranscriptMeta
  /** there are turns before these items */
  hasMoreOlder: boolean
}
export interface TranscriptSubscribed {
  accepted: string[]
  not_found: string[]
  resync_required: string[]
  cursors: {
    /** where the events of the session are */
    [k: string]: {
      seq: number
      epoch: string
    }
  }
}
export interface TrustWorkspaceData {
  trusted: true
}
export interface TurnEndedEvent {
  type: 'turn.ended'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    reason: 'completed' | 'cancelled' | 'failed' | 'blocked'
    error?: EngineError
    durationMs?: number
    interruptReason?: string
    type: 'turn.ended'
  }
}
export interface TurnStartedEvent {
  type: 'turn.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    /** why the turn runs */
    origin: {
      kind: string
      [k: string]: unknown
    }
    prompt?: string
    promptId?: string
    type: 'turn.started'
  }
}
export interface TurnStepCompletedEvent {
  type: 'turn.step.completed'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    step: number
    stepId?: string
    usage?: TokenUsage
    finishReason?: string
    providerFinishReason?: string
    rawFinishReason?: string
    llmFirstTokenLatencyMs?: number
    llmStreamDurationMs?: number
    /** where the answer of the step ends: the offset behind it */
    assistantEnd?: number
    /** where the thinking of the step ends: the offset behind it */
    thinkingEnd?: number
    type: 'turn.step.completed'
  }
}
export interface TurnStepInterruptedEvent {
  type: 'turn.step.interrupted'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    step: number
    stepId?: string
    reason: 'aborted' | 'max_steps' | 'error'
    message?: string
    /** what was streamed of it is in no message: the server ended while it came, or the disk refused it */
    lost?: boolean
    /** where the answer of the step ends: the offset behind it */
    assistantEnd?: number
    /** where the thinking of the step ends: the offset behind it */
    thinkingEnd?: number
    type: 'turn.step.interrupted'
  }
}
export interface TurnStepRetryingEvent {
  type: 'turn.step.retrying'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    step: number
    stepId?: string
    failedAttempt: number
    nextAttempt: number
    maxAttempts: number
    delayMs: number
    errorName: string
    errorMessage: string
    statusCode?: number
    type: 'turn.step.retrying'
  }
}
export interface TurnStepStartedEvent {
  type: 'turn.step.started'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    turnId: number
    step: number
    stepId?: string
    type: 'turn.step.started'
  }
}
export interface UndoSessionBody {
  /** turns; default 1 */
  count?: number
  /** messages in the answer; default 50 */
  page_size?: number
}
export interface UndoSessionData {
  messages: {
    items: Message[]
    has_more: boolean
  }
  status: SessionStatus
}
export interface UnsubscribeAck {
  accepted: string[]
  not_found: string[]
  resync_required: string[]
}
export interface UnsubscribeRequest {
  session_ids: string[]
}
export interface UnsubscribeV2Ack {
  /**
   * the session
   *
   */
  accepted: string[]
  not_found: string[]
  resync_required: string[]
}
export interface UnsubscribeV2Request {
  session_id: string
  agent_ids?: string[]
}
export interface UntrustWorkspaceData {
  trusted: false
}
export interface UpdateMcpServerQuery {
  /** absolute; files of the project join in when its workspace is trusted */
  cwd?: string
}
export interface UpdateSessionProfileRequest {
  title?: string
  metadata?: {
    [k: string]: unknown
  }
  agent_config?: {
    model?: string
    thinking?: string
    permission_mode?: 'manual' | 'yolo' | 'auto'
    plan_mode?: boolean
    swarm_mode?: boolean
    goal_objective?: string
    goal_control?: 'pause' | 'resume' | 'cancel'
    /** not applied */
    system_prompt?: {
      [k: string]: unknown
    }
    /** not applied */
    tools?: {
      [k: string]: unknown
    }
    /** not applied */
    mcp_servers?: {
      [k: string]: unknown
    }
  }
  /** not applied */
  permission_rules?: unknown[]
}
export interface UpdateSessionRuntimeBody {
  runtime_id: string
}
export interface UpdateWorkspaceBody {
  name: string
}
export interface UploadedFile {
  /** `f_` and a ULID */
  id: string
  name: string
  /** content type of the upload */
  media_type: string
  /** bytes */
  size: number
  /** ISO 8601, UTC */
  created_at: string
  /** ISO 8601, UTC */
  expires_at?: string
}
export interface WarningEvent {
  type: 'warning'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: string
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    message: string
    code?: string
    type: 'warning'
  }
}
export interface WatchFsAddAck {
  /** of this connection in this session, sorted */
  watched_paths: string[]
  /** of this connection in all sessions */
  current_count: number
}
export interface WatchFsAddRequest {
  session_id: string
  /** relative to the working directory of the session; `.` is all of it */
  paths?: string[]
  /** false: a path and its direct children */
  recursive?: boolean
  runtime_id?: string
}
export interface WatchFsRemoveAck {
  /** of this connection in this session, sorted */
  watched_paths: string[]
  /** of this connection in all sessions */
  current_count: number
}
export interface WatchFsRemoveRequest {
  session_id: string
  /** as they were added */
  paths?: string[]
  /** false: a path and its direct children */
  recursive?: boolean
  runtime_id?: string
}
export interface WorkspaceCreatedEvent {
  type: 'event.workspace.created'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** wd_<slug>_<hash12> */
    id: string
    /** Absolute path, as it was first registered */
    root: string
    name: string
    /** ISO 8601, UTC */
    created_at: string
    /** ISO 8601, UTC */
    last_opened_at: string
    /** Archived sessions too */
    session_count: number
    workspace: Workspace
    type: 'event.workspace.created'
  }
}
export interface WorkspaceDeletedEvent {
  type: 'event.workspace.deleted'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    workspace_id: string
    root: string
    type: 'event.workspace.deleted'
  }
}
export interface WorkspaceUpdatedEvent {
  type: 'event.workspace.updated'
  /** own number */
  seq: number
  /** incarnation of the journal */
  epoch: string
  session_id: '__global__'
  timestamp: string
  payload: {
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** wd_<slug>_<hash12> */
    id: string
    /** Absolute path, as it was first registered */
    root: string
    name: string
    /** ISO 8601, UTC */
    created_at: string
    /** ISO 8601, UTC */
    last_opened_at: string
    /** Archived sessions too */
    session_count: number
    workspace: Workspace
    type: 'event.workspace.updated'
  }
}

/** An answer with what was asked for. */
export interface Success<Data, Code extends number = 0> {
  code: Code
  msg: 'success'
  data: Data
  request_id: string
}

/** An answer that says why there is nothing; most have HTTP status 200. */
export interface Failure<Code extends number = number> {
  code: Code
  msg: string
  data: unknown
  request_id: string
  /** With 40001 each offending field: `{ path, message }`. */
  details?: unknown
}

interface Content<Data, Type extends string = 'application/json'> {
  content: { [type in Type]: Data }
}

/** Failures with an HTTP status of their own: credential, scope or host, address, ban. */
interface Refused {
  401: Content<Failure>
  403: Content<Failure>
  404: Content<Failure>
  429: Content<Failure>
}

/** Every route, in the form that openapi-fetch reads. */
export interface paths {
  '/api/v1/auth': {
    get: {
      parameters: { query?: GetAuthReadinessQuery }
      responses: { 200: Content<Success<AuthReadiness> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/capabilities': {
    get: {
      responses: { 200: Content<Success<ListCapabilitiesData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/capabilities/{capability_id}': {
    get: {
      parameters: { path: { capability_id: string } }
      responses: { 200: Content<Success<Capability> | Failure<40001 | 40418 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/capabilities/{capability_id}:install': {
    post: {
      parameters: { path: { capability_id: string } }
      responses: { 200: Content<Success<Capability> | Failure<40001 | 40418 | 40924 | 40925 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/catalog/providers': {
    get: {
      responses: { 200: Content<Success<ListCatalogProvidersData> | Failure<40001 | 50001 | 50003 | 50004 | 50005>> } & Refused
    }
  }
  '/api/v1/catalog/providers/{catalog_id}': {
    get: {
      parameters: { path: { catalog_id: string } }
      responses: { 200: Content<Success<CatalogEntry> | Failure<40001 | 40417 | 50001 | 50003 | 50004 | 50005>> } & Refused
    }
  }
  '/api/v1/config': {
    get: {
      responses: { 200: Content<Success<Config> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': ConfigPatch } }
      responses: { 200: Content<Success<Config> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/connections': {
    get: {
      responses: { 200: Content<Success<ListConnectionsData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/files': {
    post: {
      requestBody: { content: { 'multipart/form-data': CreateFileBody } }
      responses: { 200: Content<Success<UploadedFile> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/files/{file_id}': {
    get: {
      parameters: { path: { file_id: string } }
      responses: { 200: Content<Failure<40001 | 50001 | 50003 | 50005>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'> } & Refused
    }
    delete: {
      parameters: { path: { file_id: string } }
      responses: { 200: Content<Success<DeleteFileData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/fs:browse': {
    get: {
      parameters: { query?: BrowseDirectoriesQuery }
      responses: { 200: Content<Success<BrowseDirectoriesData> | Failure<40001 | 40409 | 40411 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/fs:content': {
    get: {
      parameters: { query: ReadHostFileQuery }
      responses: { 200: Content<Failure<40001 | 40409 | 40411 | 40906 | 50001 | 50003 | 50005>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'>; 304: { content?: never } } & Refused
    }
  }
  '/api/v1/fs:home': {
    get: {
      responses: { 200: Content<Success<ReadHomeData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/fs:mkdir': {
    post: {
      requestBody: { content: { 'application/json': MakeHostDirectoryBody } }
      responses: { 200: Content<Success<MakeHostDirectoryData> | Failure<40001 | 40409 | 40411 | 40919 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/gui/store/clear': {
    post: {
      responses: { 200: Content<Success<null> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/gui/store/getItem': {
    get: {
      parameters: { query: GetItemGuiStoreQuery }
      responses: { 200: Content<Success<GetItemGuiStoreData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/gui/store/length': {
    get: {
      responses: { 200: Content<Success<GetGuiStoreLengthData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/gui/store/removeItem': {
    post: {
      requestBody: { content: { 'application/json': RemoveItemGuiStoreBody } }
      responses: { 200: Content<Success<null> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/gui/store/setItem': {
    post: {
      requestBody: { content: { 'application/json': SetItemGuiStoreBody } }
      responses: { 200: Content<Success<null> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/healthz': {
    get: {
      responses: { 200: Content<Success<GetHealthData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/mcp/servers': {
    get: {
      responses: { 200: Content<Success<ListMcpServersData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/mcp/servers/{mcp_server_id}:restart': {
    post: {
      parameters: { path: { mcp_server_id: string } }
      responses: { 200: Content<Success<RestartMcpServerData> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/meta': {
    get: {
      responses: { 200: Content<Success<ServerMeta> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/models': {
    get: {
      responses: { 200: Content<Success<ListModelsData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/models/{model_id}:set_default': {
    post: {
      parameters: { path: { model_id: string } }
      responses: { 200: Content<Success<SetDefaultModelData> | Failure<40001 | 40413 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/oauth/login': {
    get: {
      parameters: { query?: GetLoginQuery }
      responses: { 200: Content<Success<GetLoginData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': StartLoginBody } }
      responses: { 200: Content<Success<StartLoginData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    delete: {
      parameters: { query?: CancelLoginQuery }
      responses: { 200: Content<Success<CancelLoginData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/oauth/logout': {
    post: {
      requestBody: { content: { 'application/json': LogoutBody } }
      responses: { 200: Content<Success<LogoutData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/oauth/region': {
    get: {
      responses: { 200: Content<Success<GetOauthRegionData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/oauth/usage': {
    get: {
      parameters: { query?: GetOauthUsageQuery }
      responses: { 200: Content<Success<GetOauthUsageData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/oauth/userinfo': {
    get: {
      parameters: { query?: GetOauthUserinfoQuery }
      responses: { 200: Content<Success<GetOauthUserinfoData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/packs': {
    get: {
      responses: { 200: Content<Success<ListPacksData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/packs/{name}:load': {
    post: {
      parameters: { path: { name: string } }
      responses: { 200: Content<Success<Pack> | Failure<40001 | 40430 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/packs/{name}:reload': {
    post: {
      parameters: { path: { name: string } }
      responses: { 200: Content<Success<Pack> | Failure<40001 | 40430 | 40930 | 40932 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/packs/{name}:unload': {
    post: {
      parameters: { path: { name: string } }
      responses: { 200: Content<Success<Pack> | Failure<40001 | 40430 | 40930 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/packs:refresh': {
    post: {
      responses: { 200: Content<Success<RefreshPacksData> | Failure<40001 | 40930 | 40931 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/plugins': {
    get: {
      responses: { 200: Content<Success<ListPluginsData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': InstallPluginRequest } }
      responses: { 200: Content<Success<Plugin> | Failure<40001 | 40409 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/plugins/marketplace': {
    get: {
      responses: { 200: Content<Success<GetPluginsMarketplaceData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/plugins/{plugin_id}:disable': {
    post: {
      parameters: { path: { plugin_id: string } }
      responses: { 200: Content<Success<DisablePluginData> | Failure<40001 | 40419 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/plugins/{plugin_id}:enable': {
    post: {
      parameters: { path: { plugin_id: string } }
      responses: { 200: Content<Success<EnablePluginData> | Failure<40001 | 40419 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/plugins/{plugin_id}:remove': {
    post: {
      parameters: { path: { plugin_id: string } }
      responses: { 200: Content<Success<RemovePluginData> | Failure<40001 | 40419 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/providers': {
    get: {
      responses: { 200: Content<Success<ListProvidersData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': CreateProviderRequest } }
      responses: { 200: Content<Failure<40001 | 40921 | 50001 | 50003 | 50005>>; 201: Content<Success<Provider>> } & Refused
    }
  }
  '/api/v1/providers/{provider_id}': {
    get: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Success<ProviderWithKey> | Failure<40001 | 40412 | 50001 | 50003 | 50005>> } & Refused
    }
    put: {
      parameters: { path: { provider_id: string } }
      requestBody: { content: { 'application/json': ReplaceProviderRequest } }
      responses: { 200: Content<Success<ReplaceProviderData> | Failure<40001 | 40003 | 40412 | 40921 | 50001 | 50003 | 50005>> } & Refused
    }
    delete: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Failure<40001 | 40003 | 40412 | 50001 | 50003 | 50005>>; 204: { content?: never } } & Refused
    }
  }
  '/api/v1/providers/{provider_id}:refresh': {
    post: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Success<RefreshReport> | Failure<40001 | 40412 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/providers:import_catalog': {
    post: {
      requestBody: { content: { 'application/json': ImportCatalogProviderBody } }
      responses: { 200: Content<Failure<40001 | 40003 | 40004 | 40417 | 50001 | 50003 | 50004 | 50005>>; 201: Content<Success<ImportCatalogProviderData>> } & Refused
    }
  }
  '/api/v1/providers:import_registry': {
    post: {
      requestBody: { content: { 'application/json': ImportRegistryBody } }
      responses: { 200: Content<Failure<40001 | 40003 | 40005 | 50001 | 50003 | 50005>>; 201: Content<Success<ImportRegistryData>> } & Refused
    }
  }
  '/api/v1/providers:refresh': {
    post: {
      responses: { 200: Content<Success<RefreshReport> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/providers:refresh_oauth': {
    post: {
      responses: { 200: Content<Success<RefreshReport> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/search': {
    post: {
      requestBody: { content: { 'application/json': SearchBody } }
      responses: { 200: Content<Success<SearchData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions': {
    get: {
      parameters: { query?: ListSessionsQuery }
      responses: { 200: Content<Success<ListSessionsData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': CreateSessionRequest } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40409 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    delete: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<DeleteSessionData> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/approvals': {
    get: {
      parameters: { path: { session_id: string }; query: ListSessionApprovalsQuery }
      responses: { 200: Content<Success<ListSessionApprovalsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/approvals/{approval_id}': {
    post: {
      parameters: { path: { session_id: string; approval_id: string } }
      requestBody: { content: { 'application/json': ApprovalAnswer } }
      responses: { 200: Content<Success<ResolveApprovalData> | Failure<40001 | 40401 | 40404 | 40901 | 40902 | 41001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/children': {
    get: {
      parameters: { path: { session_id: string }; query?: ListSessionChildrenQuery }
      responses: { 200: Content<Success<ListSessionChildrenData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': CreateSessionChildBody } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/export': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': ExportRequest } }
      responses: { 200: Content<Failure<40001 | 40401 | 50001 | 50003 | 50005>> & Content<unknown, 'application/zip'> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs/{path}:download': {
    get: {
      parameters: { path: { session_id: string; path: string }; query?: DownloadFromSessionQuery }
      responses: { 200: Content<Failure<40001 | 40401 | 40409 | 40411 | 40420 | 40906 | 41304 | 50001 | 50003 | 50005>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'>; 304: { content?: never } } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:diff': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': DiffFileBody } }
      responses: { 200: Content<Success<DiffFileData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 40908 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:git_status': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': ReadGitStatusBody } }
      responses: { 200: Content<Success<ReadGitStatusData> | Failure<40001 | 40401 | 40420 | 40908 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:grep': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': GrepFilesBody } }
      responses: { 200: Content<Success<GrepFilesData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41305 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:list': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': ListFilesBody } }
      responses: { 200: Content<Success<ListFilesData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:list_many': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': ListManyFilesBody } }
      responses: { 200: Content<Success<ListManyFilesData> | Failure<40001 | 40401 | 40420 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:mkdir': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': MakeDirectoryBody } }
      responses: { 200: Content<Success<FileEntry> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 40919 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:open': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': OpenFileBody } }
      responses: { 200: Content<Success<OpenFileData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:open-in': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': OpenFileInBody } }
      responses: { 200: Content<Success<OpenFileInData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:read': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': ReadFileBody } }
      responses: { 200: Content<Success<ReadFileData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 40906 | 40907 | 41302 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:reveal': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': RevealFileBody } }
      responses: { 200: Content<Success<RevealFileData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:search': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': SearchNamesBody } }
      responses: { 200: Content<Success<SearchNamesData> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:stat': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': StatFileBody } }
      responses: { 200: Content<Success<FileEntry> | Failure<40001 | 40401 | 40409 | 40411 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/fs:stat_many': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': StatManyFilesBody } }
      responses: { 200: Content<Success<StatManyFilesData> | Failure<40001 | 40401 | 40420 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/goal': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionGoalData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/media/{file_id}': {
    get: {
      parameters: { path: { session_id: string; file_id: string } }
      responses: { 200: Content<Failure<40001 | 50001 | 50003 | 50005>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/messages': {
    get: {
      parameters: { path: { session_id: string }; query?: ListSessionMessagesQuery }
      responses: { 200: Content<Success<ListSessionMessagesData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/messages/{message_id}': {
    get: {
      parameters: { path: { session_id: string; message_id: string } }
      responses: { 200: Content<Success<Message> | Failure<40001 | 40401 | 40403 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/profile': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': UpdateSessionProfileRequest } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 40901 | 40913 | 40914 | 40915 | 40916 | 40917 | 40918 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<ListPromptsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': SubmitPromptRequest } }
      responses: { 200: Content<Success<Prompt> | Failure<40001 | 40110 | 40111 | 40112 | 40113 | 40401 | 40407 | 40415 | 40901 | 40903 | 40912 | 40927 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts/{prompt_id}:abort': {
    post: {
      parameters: { path: { session_id: string; prompt_id: string } }
      responses: { 200: Content<Success<AbortPromptData> | Failure<40001 | 40401 | 40402 | 40901 | 40903 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts/{prompt_id}:steer': {
    post: {
      parameters: { path: { session_id: string; prompt_id: string } }
      responses: { 200: Content<Success<SteerResult> | Failure<40001 | 40401 | 40402 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts:steer': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': SteerPromptsBody } }
      responses: { 200: Content<Success<SteerResult> | Failure<40001 | 40401 | 40402 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions': {
    get: {
      parameters: { path: { session_id: string }; query: ListSessionQuestionsQuery }
      responses: { 200: Content<Success<ListSessionQuestionsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions/{question_id}': {
    post: {
      parameters: { path: { session_id: string; question_id: string } }
      requestBody: { content: { 'application/json': AnswerQuestionBody } }
      responses: { 200: Content<Success<AnswerQuestionData> | Failure<40001 | 40401 | 40405 | 40901 | 40902 | 41002 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions/{question_id}:dismiss': {
    post: {
      parameters: { path: { session_id: string; question_id: string } }
      responses: { 200: Content<Success<DismissQuestionData, 40909> | Failure<40001 | 40401 | 40405 | 40901 | 40902 | 41002 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/runtime': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<RuntimeBinding> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': UpdateSessionRuntimeBody } }
      responses: { 200: Content<Success<RuntimeBinding> | Failure<40001 | 40401 | 40420 | 40901 | 40926 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/skills': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<ListSessionSkillsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/skills/{skill_name}:activate': {
    post: {
      parameters: { path: { session_id: string; skill_name: string } }
      requestBody: { content: { 'application/json': ActivateSessionSkillBody } }
      responses: { 200: Content<Success<ActivateSessionSkillData> | Failure<40001 | 40110 | 40111 | 40112 | 40113 | 40401 | 40407 | 40415 | 40901 | 40912 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/snapshot': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<SessionSnapshot> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/status': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<SessionStatus> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks': {
    get: {
      parameters: { path: { session_id: string }; query?: ListSessionTasksQuery }
      responses: { 200: Content<Success<ListSessionTasksData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}': {
    get: {
      parameters: { path: { session_id: string; task_id: string }; query?: GetSessionTaskQuery }
      responses: { 200: Content<Success<Task> | Failure<40001 | 40401 | 40406 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}:cancel': {
    post: {
      parameters: { path: { session_id: string; task_id: string } }
      responses: { 200: Content<Success<CancelSessionTaskData> | Failure<40001 | 40401 | 40406 | 40901 | 40904 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}:detach': {
    post: {
      parameters: { path: { session_id: string; task_id: string } }
      responses: { 200: Content<Success<DetachSessionTaskData> | Failure<40001 | 40401 | 40406 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/terminals': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<ListSessionTerminalsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': CreateSessionTerminalBody } }
      responses: { 200: Content<Success<Terminal> | Failure<40001 | 40401 | 40420 | 40901 | 40926 | 41304 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/terminals/{terminal_id}': {
    get: {
      parameters: { path: { session_id: string; terminal_id: string } }
      responses: { 200: Content<Success<Terminal> | Failure<40001 | 40401 | 40414 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/terminals/{terminal_id}:close': {
    post: {
      parameters: { path: { session_id: string; terminal_id: string } }
      responses: { 200: Content<Success<CloseSessionTerminalData> | Failure<40001 | 40401 | 40414 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/title/generate': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': GenerateTitleRequest } }
      responses: { 200: Content<Success<GenerateSessionTitleData> | Failure<40001 | 40401 | 40901 | 40923 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/transcript': {
    get: {
      parameters: { path: { session_id: string }; query: GetSessionTranscriptQuery }
      responses: { 200: Content<Success<TranscriptPage> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/transcript/ops': {
    get: {
      parameters: { path: { session_id: string }; query: ListSessionTranscriptOpsQuery }
      responses: { 200: Content<Success<ListSessionTranscriptOpsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/transcript/plan': {
    get: {
      parameters: { path: { session_id: string }; query: GetSessionTranscriptPlanQuery }
      responses: { 200: Content<Success<GetSessionTranscriptPlanData> | Failure<40001 | 40401 | 40416 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/transcript/user-messages': {
    get: {
      parameters: { path: { session_id: string }; query?: ListSessionTranscriptUserMessagesQuery }
      responses: { 200: Content<Success<ListSessionTranscriptUserMessagesData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/warnings': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<ListSessionWarningsData> | Failure<40001 | 40401 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:abort': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<AbortSessionData> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:archive': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<ArchiveSessionData> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:btw': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<BtwSessionData> | Failure<40001 | 40110 | 40111 | 40112 | 40113 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:compact': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': CompactSessionBody } }
      responses: { 200: Content<Success<CompactSessionData> | Failure<40001 | 40401 | 40901 | 40910 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:delete': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<DeleteSessionByActionData> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:fork': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': ForkSessionBody } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:restore': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<Session> | Failure<40001 | 40401 | 40901 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:undo': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': UndoSessionBody } }
      responses: { 200: Content<Success<UndoSessionData> | Failure<40001 | 40401 | 40901 | 40911 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/shutdown': {
    post: {
      responses: { 200: Content<Success<ShutdownData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/tools': {
    get: {
      parameters: { query?: ListToolsQuery }
      responses: { 200: Content<Success<ListToolsData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspace/fs:search': {
    post: {
      requestBody: { content: { 'application/json': SearchWorkspaceNamesBody } }
      responses: { 200: Content<Success<SearchWorkspaceNamesData> | Failure<40001 | 40409 | 40410 | 40411 | 40420 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspace/fs:suggest': {
    post: {
      requestBody: { content: { 'application/json': SuggestNamesBody } }
      responses: { 200: Content<Success<SuggestNamesData> | Failure<40001 | 40409 | 40410 | 40411 | 40420 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspaces': {
    get: {
      responses: { 200: Content<Success<ListWorkspacesData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': RegisterWorkspaceBody } }
      responses: { 200: Content<Success<Workspace> | Failure<40001 | 40409 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}': {
    patch: {
      parameters: { path: { workspace_id: string } }
      requestBody: { content: { 'application/json': UpdateWorkspaceBody } }
      responses: { 200: Content<Success<Workspace> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
    delete: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<DeleteWorkspaceData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}/skills': {
    get: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<ListWorkspaceSkillsData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}/trust': {
    get: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<GetWorkspaceTrustData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<TrustWorkspaceData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}/untrust': {
    post: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<UntrustWorkspaceData> | Failure<40001 | 40410 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/auth-statuses': {
    get: {
      parameters: { query?: ReadMcpAuthStatusesQuery }
      responses: { 200: Content<Success<ReadMcpAuthStatusesData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/auth:begin': {
    post: {
      parameters: { query?: BeginMcpAuthQuery }
      requestBody: { content: { 'application/json': McpLocator } }
      responses: { 200: Content<Success<BeginMcpAuthData> | Failure<40001 | 40408 | 40929 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/auth:cancel': {
    post: {
      requestBody: { content: { 'application/json': CancelMcpAuthBody } }
      responses: { 200: Content<Success<null> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/auth:complete': {
    post: {
      requestBody: { content: { 'application/json': CompleteMcpAuthBody } }
      responses: { 200: Content<Success<null> | Failure<40001 | 40929 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/auth:reset': {
    post: {
      parameters: { query?: ResetMcpAuthQuery }
      requestBody: { content: { 'application/json': McpLocator } }
      responses: { 200: Content<Success<null> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/servers': {
    get: {
      parameters: { query?: ListManagedMcpServersQuery }
      responses: { 200: Content<Success<ListManagedMcpServersData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
    post: {
      parameters: { query?: AddMcpServerQuery }
      requestBody: { content: { 'application/json': McpServerInput } }
      responses: { 200: Content<Success<AddMcpServerData> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/servers/{name}': {
    get: {
      parameters: { path: { name: string }; query?: ReadManagedMcpServerQuery }
      responses: { 200: Content<Success<McpManagedServer> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
    put: {
      parameters: { path: { name: string }; query?: UpdateMcpServerQuery }
      requestBody: { content: { 'application/json': UpdateMcpServerBody } }
      responses: { 200: Content<Success<UpdateMcpServerData> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
    delete: {
      parameters: { path: { name: string }; query?: DeleteMcpServerQuery }
      responses: { 200: Content<Success<DeleteMcpServerData> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/servers:inspect': {
    post: {
      requestBody: { content: { 'application/json': InspectMcpServersBody } }
      responses: { 200: Content<Success<InspectMcpServersData> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/mcp/servers:test': {
    post: {
      requestBody: { content: { 'application/json': TestMcpServerBody } }
      responses: { 200: Content<Success<TestMcpServerData> | Failure<40001 | 40408 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/sessions': {
    get: {
      parameters: { query?: ListSessionItemsQuery }
      responses: { 200: Content<Success<ListSessionItemsData> | Failure<40001 | 40922 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/sessions:archive': {
    post: {
      requestBody: { content: { 'application/json': SessionIds } }
      responses: { 200: Content<Success<SessionBatch> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/api/v2/sessions:restore': {
    post: {
      requestBody: { content: { 'application/json': SessionIds } }
      responses: { 200: Content<Success<SessionBatch> | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/asyncapi.json': {
    get: {
      responses: { 200: Content<GetAsyncapiDocumentData | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
  '/openapi.json': {
    get: {
      responses: { 200: Content<GetOpenapiDocumentData | Failure<40001 | 50001 | 50003 | 50005>> } & Refused
    }
  }
}

/** Event frames by type. */
export interface Events {
  'agent.created': AgentCreatedEvent
  'agent.disposed': AgentDisposedEvent
  'agent.status.updated': AgentStatusUpdatedEvent
  'assistant.delta': AssistantDeltaEvent
  'compaction.blocked': CompactionBlockedEvent
  'compaction.cancelled': CompactionCancelledEvent
  'compaction.completed': CompactionCompletedEvent
  'compaction.started': CompactionStartedEvent
  'context.undone': ContextUndoneEvent
  'cron.fired': CronFiredEvent
  'error': ErrorEvent
  'event.approval.requested': ApprovalRequestedEvent
  'event.approval.resolved': ApprovalResolvedEvent
  'event.capability.changed': CapabilityChangedEvent
  'event.config.changed': ConfigChangedEvent
  'event.config.warning': ConfigWarningEvent
  'event.model_catalog.changed': ModelCatalogChangedEvent
  'event.plugin.changed': PluginChangedEvent
  'event.question.answered': QuestionAnsweredEvent
  'event.question.dismissed': QuestionDismissedEvent
  'event.question.requested': QuestionRequestedEvent
  'event.session.archived': SessionArchivedEvent
  'event.session.created': SessionCreatedEvent
  'event.session.status_changed': SessionStatusChangedEvent
  'event.session.work_changed': SessionWorkChangedEvent
  'event.workspace.created': WorkspaceCreatedEvent
  'event.workspace.deleted': WorkspaceDeletedEvent
  'event.workspace.updated': WorkspaceUpdatedEvent
  'goal.updated': GoalUpdatedEvent
  'hook.result': HookResultEvent
  'mcp.server.status': McpServerStatusEvent
  'plan.revision': PlanRevisionEvent
  'plugin_command.activated': PluginCommandActivatedEvent
  'prompt.aborted': PromptAbortedEvent
  'prompt.completed': PromptCompletedEvent
  'prompt.queued': PromptQueuedEvent
  'prompt.steered': PromptSteeredEvent
  'prompt.submitted': PromptSubmittedEvent
  'session.meta.updated': SessionMetaUpdatedEvent
  'shell.completed': ShellCompletedEvent
  'shell.output': ShellOutputEvent
  'shell.started': ShellStartedEvent
  'skill.activated': SkillActivatedEvent
  'subagent.completed': SubagentCompletedEvent
  'subagent.failed': SubagentFailedEvent
  'subagent.spawned': SubagentSpawnedEvent
  'subagent.started': SubagentStartedEvent
  'subagent.suspended': SubagentSuspendedEvent
  'task.notified': TaskNotifiedEvent
  'task.started': TaskStartedEvent
  'task.terminated': TaskTerminatedEvent
  'thinking.delta': ThinkingDeltaEvent
  'tool.call.delta': ToolCallDeltaEvent
  'tool.call.started': ToolCallStartedEvent
  'tool.list.updated': ToolListUpdatedEvent
  'tool.progress': ToolProgressEvent
  'tool.result': ToolResultEvent
  'turn.ended': TurnEndedEvent
  'turn.started': TurnStartedEvent
  'turn.step.completed': TurnStepCompletedEvent
  'turn.step.interrupted': TurnStepInterruptedEvent
  'turn.step.retrying': TurnStepRetryingEvent
  'turn.step.started': TurnStepStartedEvent
  'warning': WarningEvent
}

/** What the server sends beside events and acks, by type. */
export interface SystemFrames {
  'server_hello': ServerHelloFrame
  'resync_required': ResyncRequiredFrame
  'event.fs.changed': EventFsChangedFrame
  'terminal_exit': TerminalExitFrame
  'terminal_output': TerminalOutputFrame
  'transcript.ops': TranscriptOpsFrame
  'transcript.reset': TranscriptResetFrame
}

/** Control frames: what is sent, and the payload of the ack. */
export interface Requests {
  'client_hello': { payload: ClientHelloRequest; ack: ClientHelloAck }
  'subscribe': { payload: SubscribeRequest; ack: SubscribeAck }
  'subscribe_v2': { payload: SubscribeV2Request; ack: TranscriptSubscribed }
  'terminal_attach': { payload: TerminalAttachRequest; ack: TerminalAttachAck }
  'terminal_close': { payload: TerminalCloseRequest; ack: TerminalCloseAck }
  'terminal_detach': { payload: TerminalDetachRequest; ack: TerminalDetachAck }
  'terminal_input': { payload: TerminalInputRequest; ack: TerminalInputAck }
  'terminal_resize': { payload: TerminalResizeRequest; ack: TerminalResizeAck }
  'unsubscribe': { payload: UnsubscribeRequest; ack: UnsubscribeAck }
  'unsubscribe_v2': { payload: UnsubscribeV2Request; ack: UnsubscribeV2Ack }
  'watch_fs_add': { payload: WatchFsAddRequest; ack: WatchFsAddAck }
  'watch_fs_remove': { payload: WatchFsRemoveRequest; ack: WatchFsRemoveAck }
}

/** Any event. */
export type EventFrame = Events[keyof Events]

/** Any frame of the server but an ack. */
export type ServerFrame = EventFrame | SystemFrames[keyof SystemFrames]
