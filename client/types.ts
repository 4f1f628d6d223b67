/**
 * Types of the server's API: the shared shapes, `paths` for REST, and the frames of the WebSocket.
 * Made by .ci/client-types.mjs from the documents that the server serves. Do not edit.
 */

export type GetOauthLoginData = {
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
} | null
export type GetOauthUsageData =
  | {
      kind: 'ok'
      summary: {
        name?: string
        window?: {
          duration: number
          unit: 'minute' | 'hour' | 'day' | 'week'
        }
        used: number
        limit: number
        reset_at?: string
      } | null
      limits: {
        name?: string
        window?: {
          duration: number
          unit: 'minute' | 'hour' | 'day' | 'week'
        }
        used: number
        limit: number
        reset_at?: string
      }[]
      extra_usage: {
        balance_cents: number
        total_cents: number
        monthly_charge_limit_enabled: boolean
        monthly_charge_limit_cents: number
        monthly_used_cents: number
        currency: string
      } | null
    }
  | {
      kind: 'error'
      message: string
      /** HTTP status of the account service, when there is one */
      status?: number
    }
export type GetOauthUserinfoData =
  | {
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
  | {
      kind: 'error'
      message: string
      /** HTTP status of the account service, when there is one */
      status?: number
    }
export type PostOauthLoginData =
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
    usage?: {
      byModel?: {
        [k: string]: {
          inputOther: number
          output: number
          inputCacheRead: number
          inputCacheCreation: number
        }
      }
      currentTurn?: {
        inputOther: number
        output: number
        inputCacheRead: number
        inputCacheCreation: number
      }
      total?: {
        inputOther: number
        output: number
        inputCacheRead: number
        inputCacheCreation: number
      }
    }
    phase?: {
      kind: string
      [k: string]: unknown
    }
    type: 'agent.status.updated'
  }
  /** length of the streamed text before this chunk, UTF-16 units */
  offset?: number
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
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** approval_<uuid> */
    approval_id: string
    session_id: string
    /** 0-based turn number */
    turn_id?: number
    tool_call_id: string
    tool_name: string
    /** short phrase: `Running: ls` */
    action: string
    /** display union on `kind` */
    tool_input_display: {
      kind: string
      [k: string]: unknown
    }
    /** ISO 8601, UTC */
    created_at: string
    /** the request is withdrawn at this instant */
    expires_at: string
    type: 'event.approval.requested'
  }
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
    decision: 'approved' | 'rejected' | 'cancelled'
    /** with approved: remember for the rest of the session; else ignored */
    scope?: 'session'
    /** handed back to the agent */
    feedback?: string
    /** label of the chosen option when the request offers some */
    selected_label?: string
    type: 'event.approval.resolved'
  }
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
export interface ClientHelloAck {
  accepted_subscriptions: string[]
  not_found: string[]
  resync_required: string[]
  cursors: {
    [k: string]: {
      seq: number
      epoch: string
    }
  }
}
export interface ClientHelloRequest {
  client_id?: string
  subscriptions?: string[]
  /** Last durable event applied, per session */
  cursors?: {
    [k: string]: {
      seq: number
      epoch?: string
    }
  }
  token?: string
  /** Whom to show, per session; empty shows all */
  agent_filter?: {
    [k: string]: string[]
  }
}
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
    /** Keys at the top are snake_case, those inside a domain camelCase */
    config: {
      providers: {
        [k: string]: {
          /** Wire protocol; empty when the record names none */
          type: string
          base_url?: string
          default_model?: string
          has_api_key: boolean
        }
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
            }
            /** Tokens */
            maxContextSize?: number
          }
        }
      }
      thinking: {
        enabled?: boolean
        effort?: string
        keep?: string
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
        }[]
        allow?: {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
        deny?: {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
        ask?: {
          tool: string
          match?: string
          pattern?: string
          reason?: string
        }[]
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
        }
        svcFetch?: {
          baseUrl?: string
        }
      }
      loop_control: {
        /** Absent or 0: unlimited */
        maxStepsPerTurn?: number
        maxAttemptsPerStep?: number
        maxRalphIterations?: number
        /** Tokens */
        reservedContextSize?: number
        compactionTriggerRatio?: number
      }
      token_counting: {
        strategy: 'measured+estimated' | 'measured' | 'estimated'
      }
      background: {
        maxRunningTasks?: number
        keepAliveOnExit?: boolean
        bashAutoBackgroundOnTimeout?: boolean
        /** Seconds */
        bashTaskTimeoutS?: number
        killGracePeriodMs?: number
        printWaitCeilingS?: number
        printBackgroundMode?: 'exit' | 'drain' | 'steer'
        printMaxTurns?: number
      }
      subagent: {
        timeoutMs: number
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
        maxContextSize?: number
        maxInputSize?: number
        maxOutputSize?: number
        capabilities?: string[]
        displayName?: string
        reasoningKey?: string
        adaptiveThinking?: boolean
        supportEfforts?: string[]
        defaultEffort?: string
        offEffort?: string
      }
      experimental: {
        [k: string]: boolean
      }
      model_catalog: {
        /** 0: off */
        refreshIntervalMs: number
        refreshOnStart: boolean
      }
      offline: boolean
      tools: {
        /** empty or absent: no limit; `mcp__` entries are globs */
        enabled?: string[]
        disabled?: string[]
      }
      image: {
        /** Longest edge of images that models get */
        maxEdgePx?: number
        /** Bytes of an image that ReadMediaFile answers */
        readByteBudget?: number
      }
    }
    type: 'event.config.changed'
  }
}
export interface DeleteFilesFileIdData {
  deleted: true
}
export interface DeleteOauthLoginData {
  cancelled: boolean
  status: 'pending' | 'authenticated' | 'denied' | 'expired' | 'cancelled'
}
export interface DeleteOauthLoginQuery {
  provider?: string
}
export interface DeleteWorkspacesWorkspaceIdData {
  deleted: true
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
export interface GetAuthData {
  /** A provider, a default model that exists, and no revoked login */
  ready: boolean
  providers_count: number
  default_model: string | null
  managed_provider: {
    name: string
    status: 'authenticated' | 'expired' | 'revoked' | 'unauthenticated'
  } | null
  /** What is in the way of prompts to the default model, in words; absent when nothing is known to be */
  warnings?: string[]
}
export interface GetCatalogProvidersCatalogIdData {
  id: string
  name: string
  wire_type: ('svc' | 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai' | 'compat_cloud') | null
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
export interface GetCatalogProvidersData {
  items: {
    id: string
    name: string
    wire_type: ('svc' | 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai' | 'compat_cloud') | null
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
  }[]
}
/**
 * Keys at the top are snake_case, those inside a domain camelCase
 *
 */
export interface GetConfigData {
  providers: {
    [k: string]: {
      /** Wire protocol; empty when the record names none */
      type: string
      base_url?: string
      default_model?: string
      has_api_key: boolean
    }
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
        }
        /** Tokens */
        maxContextSize?: number
      }
    }
  }
  thinking: {
    enabled?: boolean
    effort?: string
    keep?: string
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
    }[]
    allow?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
    deny?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
    ask?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
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
    }
    svcFetch?: {
      baseUrl?: string
    }
  }
  loop_control: {
    /** Absent or 0: unlimited */
    maxStepsPerTurn?: number
    maxAttemptsPerStep?: number
    maxRalphIterations?: number
    /** Tokens */
    reservedContextSize?: number
    compactionTriggerRatio?: number
  }
  token_counting: {
    strategy: 'measured+estimated' | 'measured' | 'estimated'
  }
  background: {
    maxRunningTasks?: number
    keepAliveOnExit?: boolean
    bashAutoBackgroundOnTimeout?: boolean
    /** Seconds */
    bashTaskTimeoutS?: number
    killGracePeriodMs?: number
    printWaitCeilingS?: number
    printBackgroundMode?: 'exit' | 'drain' | 'steer'
    printMaxTurns?: number
  }
  subagent: {
    timeoutMs: number
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
    maxContextSize?: number
    maxInputSize?: number
    maxOutputSize?: number
    capabilities?: string[]
    displayName?: string
    reasoningKey?: string
    adaptiveThinking?: boolean
    supportEfforts?: string[]
    defaultEffort?: string
    offEffort?: string
  }
  experimental: {
    [k: string]: boolean
  }
  model_catalog: {
    /** 0: off */
    refreshIntervalMs: number
    refreshOnStart: boolean
  }
  offline: boolean
  tools: {
    /** empty or absent: no limit; `mcp__` entries are globs */
    enabled?: string[]
    disabled?: string[]
  }
  image: {
    /** Longest edge of images that models get */
    maxEdgePx?: number
    /** Bytes of an image that ReadMediaFile answers */
    readByteBudget?: number
  }
}
export interface GetConnectionsData {
  connections: {
    id: string
    /** ISO 8601, UTC */
    connected_at: string
    remote_address: string | null
    user_agent: string | null
    has_client_hello: boolean
    subscriptions: string[]
  }[]
}
export interface GetHealthzData {
  ok: true
}
export interface GetMetaData {
  server_version: string
  capabilities: {
    websocket: true
    file_upload: true
    fs_query: true
    mcp: true
    tasks: true
    terminal: true
  }
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
  features: {
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
    }
  }[]
  web_title?: string
}
export interface GetModelsData {
  items: {
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
  }[]
}
export interface GetOauthLoginQuery {
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
export interface GetProvidersData {
  items: {
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
  }[]
}
export interface GetProvidersProviderIdData {
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
export interface GetSessionsData {
  items: {
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
    pending_interaction: 'none' | 'approval' | 'question'
    last_turn_reason?: 'completed' | 'cancelled' | 'failed'
    last_prompt?: string
    /** custom metadata; always carries cwd */
    metadata: {
      [k: string]: unknown
    }
    agent_config: {
      model: string
    }
    usage: {
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
    permission_rules: unknown[]
    message_count: number
    last_seq: number
  }[]
  has_more: boolean
}
export interface GetSessionsQuery {
  before_id?: string
  after_id?: string
  page_size?: number
  busy?: boolean
  include_archive?: boolean
  archived_only?: boolean
  exclude_empty?: boolean
  workspace_id?: string
}
export interface GetSessionsSessionIdApprovalsData {
  items: {
    /** approval_<uuid> */
    approval_id: string
    session_id: string
    /** 0-based turn number */
    turn_id?: number
    tool_call_id: string
    tool_name: string
    /** short phrase: `Running: ls` */
    action: string
    /** display union on `kind` */
    tool_input_display: {
      kind: string
      [k: string]: unknown
    }
    /** ISO 8601, UTC */
    created_at: string
    /** the request is withdrawn at this instant */
    expires_at: string
  }[]
}
export interface GetSessionsSessionIdApprovalsQuery {
  status: 'pending'
}
export interface GetSessionsSessionIdData {
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
  pending_interaction: 'none' | 'approval' | 'question'
  last_turn_reason?: 'completed' | 'cancelled' | 'failed'
  last_prompt?: string
  /** custom metadata; always carries cwd */
  metadata: {
    [k: string]: unknown
  }
  agent_config: {
    model: string
  }
  usage: {
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
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface GetSessionsSessionIdMessagesData {
  items: {
    id: string
    session_id: string
    role: 'user' | 'assistant' | 'tool' | 'system'
    content: {
      type: string
      [k: string]: unknown
    }[]
    /** ISO 8601, UTC */
    created_at: string
    prompt_id?: string
    parent_message_id?: string
    /** `origin` tells why the message exists */
    metadata?: {
      [k: string]: unknown
    }
  }[]
  has_more: boolean
}
export interface GetSessionsSessionIdMessagesMessageIdData {
  id: string
  session_id: string
  role: 'user' | 'assistant' | 'tool' | 'system'
  content: {
    type: string
    [k: string]: unknown
  }[]
  /** ISO 8601, UTC */
  created_at: string
  prompt_id?: string
  parent_message_id?: string
  /** `origin` tells why the message exists */
  metadata?: {
    [k: string]: unknown
  }
}
export interface GetSessionsSessionIdMessagesQuery {
  before_id?: string
  after_id?: string
  page_size?: number
  role?: 'user' | 'assistant' | 'tool' | 'system'
}
export interface GetSessionsSessionIdProfileData {
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
  pending_interaction: 'none' | 'approval' | 'question'
  last_turn_reason?: 'completed' | 'cancelled' | 'failed'
  last_prompt?: string
  /** custom metadata; always carries cwd */
  metadata: {
    [k: string]: unknown
  }
  agent_config: {
    model: string
  }
  usage: {
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
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface GetSessionsSessionIdPromptsData {
  active: {
    prompt_id: string
    user_message_id: string
    status: 'running' | 'queued' | 'blocked'
    content: {
      type: string
      [k: string]: unknown
    }[]
    /** ISO 8601, UTC */
    created_at: string
  } | null
  queued: {
    prompt_id: string
    user_message_id: string
    status: 'running' | 'queued' | 'blocked'
    content: {
      type: string
      [k: string]: unknown
    }[]
    /** ISO 8601, UTC */
    created_at: string
  }[]
}
export interface GetSessionsSessionIdQuestionsData {
  items: {
    /** question_<uuid> */
    question_id: string
    session_id: string
    /** 0-based turn number */
    turn_id?: number
    tool_call_id?: string
    questions: {
      /** `q_<item>`, from 0 */
      id: string
      question: string
      header?: string
      body?: string
      options: {
        /** `opt_<item>_<option>`, from 0 */
        id: string
        label: string
        description?: string
      }[]
      multi_select?: boolean
      /** a text of the user is an answer, too */
      allow_other?: boolean
      other_label?: string
      other_description?: string
    }[]
    /** ISO 8601, UTC */
    created_at: string
    /** the question is withdrawn at this instant */
    expires_at?: string
  }[]
}
export interface GetSessionsSessionIdQuestionsQuery {
  status: 'pending'
}
export interface GetSessionsSessionIdSnapshotData {
  as_of_seq: number
  epoch: string
  session: {
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
    pending_interaction: 'none' | 'approval' | 'question'
    last_turn_reason?: 'completed' | 'cancelled' | 'failed'
    last_prompt?: string
    /** custom metadata; always carries cwd */
    metadata: {
      [k: string]: unknown
    }
    agent_config: {
      model: string
    }
    usage: {
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
    permission_rules: unknown[]
    message_count: number
    last_seq: number
  }
  messages: {
    items: {
      id: string
      session_id: string
      role: 'user' | 'assistant' | 'tool' | 'system'
      content: {
        type: string
        [k: string]: unknown
      }[]
      /** ISO 8601, UTC */
      created_at: string
      prompt_id?: string
      parent_message_id?: string
      /** `origin` tells why the message exists */
      metadata?: {
        [k: string]: unknown
      }
    }[]
    has_more: boolean
  }
  in_flight_turn: {
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
  } | null
  subagents: unknown[]
  pending_approvals: {
    /** approval_<uuid> */
    approval_id: string
    session_id: string
    /** 0-based turn number */
    turn_id?: number
    tool_call_id: string
    tool_name: string
    /** short phrase: `Running: ls` */
    action: string
    /** display union on `kind` */
    tool_input_display: {
      kind: string
      [k: string]: unknown
    }
    /** ISO 8601, UTC */
    created_at: string
    /** the request is withdrawn at this instant */
    expires_at: string
  }[]
  pending_questions: (
    | {
        /** question_<uuid> */
        question_id: string
        session_id: string
        /** 0-based turn number */
        turn_id?: number
        tool_call_id?: string
        questions: {
          /** `q_<item>`, from 0 */
          id: string
          question: string
          header?: string
          body?: string
          options: {
            /** `opt_<item>_<option>`, from 0 */
            id: string
            label: string
            description?: string
          }[]
          multi_select?: boolean
          /** a text of the user is an answer, too */
          allow_other?: boolean
          other_label?: string
          other_description?: string
        }[]
        /** ISO 8601, UTC */
        created_at: string
        /** the question is withdrawn at this instant */
        expires_at?: string
      }
    | {
        [k: string]: unknown
      }
  )[]
  /** newest failure of the main agent; absent when a turn has completed since */
  last_failure?: {
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
}
export interface GetSessionsSessionIdStatusData {
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
  /** newest failure of the main agent; absent when a turn has completed since */
  last_failure?: {
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
}
export interface GetSessionsSessionIdTasksData {
  items: {
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
    /** end of its output */
    output_preview?: string
    /** length of output_preview in UTF-8 */
    output_bytes?: number
  }[]
}
export interface GetSessionsSessionIdTasksQuery {
  status?: 'running' | 'completed' | 'failed' | 'cancelled'
}
export interface GetSessionsSessionIdTasksTaskIdData {
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
  /** end of its output */
  output_preview?: string
  /** length of output_preview in UTF-8 */
  output_bytes?: number
}
export interface GetSessionsSessionIdTasksTaskIdQuery {
  with_output?: boolean
  /** how much of the output, from its end; at most 1 MiB is kept */
  output_bytes?: number
}
export interface GetToolsData {
  tools: {
    name: string
    description: string
    /** always null */
    input_schema: null
    source: 'builtin' | 'skill' | 'mcp'
    /** the part between `mcp__` and the next `__` of the name */
    mcp_server_id?: string
    /** verdict of the tool policies for the main agent */
    active?: boolean
  }[]
}
export interface GetToolsQuery {
  session_id?: string
}
export interface GetWorkspacesData {
  items: {
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
  }[]
}
export interface GetWorkspacesWorkspaceIdTrustData {
  trusted: boolean
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
export interface ModelCatalogChangedEvent {
  type: 'event.model_catalog.changed'
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
    type: 'event.model_catalog.changed'
  }
}
export interface PatchWorkspacesWorkspaceIdBody {
  name: string
}
export interface PatchWorkspacesWorkspaceIdData {
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
export interface PostConfigBody {
  /** true: default_permission_mode yolo; false is ignored */
  yolo?: boolean
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
  image?: {
    maxEdgePx?: number | null
    readByteBudget?: number | null
  } | null
  [k: string]: unknown
}
/**
 * Keys at the top are snake_case, those inside a domain camelCase
 *
 */
export interface PostConfigData {
  providers: {
    [k: string]: {
      /** Wire protocol; empty when the record names none */
      type: string
      base_url?: string
      default_model?: string
      has_api_key: boolean
    }
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
        }
        /** Tokens */
        maxContextSize?: number
      }
    }
  }
  thinking: {
    enabled?: boolean
    effort?: string
    keep?: string
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
    }[]
    allow?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
    deny?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
    ask?: {
      tool: string
      match?: string
      pattern?: string
      reason?: string
    }[]
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
    }
    svcFetch?: {
      baseUrl?: string
    }
  }
  loop_control: {
    /** Absent or 0: unlimited */
    maxStepsPerTurn?: number
    maxAttemptsPerStep?: number
    maxRalphIterations?: number
    /** Tokens */
    reservedContextSize?: number
    compactionTriggerRatio?: number
  }
  token_counting: {
    strategy: 'measured+estimated' | 'measured' | 'estimated'
  }
  background: {
    maxRunningTasks?: number
    keepAliveOnExit?: boolean
    bashAutoBackgroundOnTimeout?: boolean
    /** Seconds */
    bashTaskTimeoutS?: number
    killGracePeriodMs?: number
    printWaitCeilingS?: number
    printBackgroundMode?: 'exit' | 'drain' | 'steer'
    printMaxTurns?: number
  }
  subagent: {
    timeoutMs: number
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
    maxContextSize?: number
    maxInputSize?: number
    maxOutputSize?: number
    capabilities?: string[]
    displayName?: string
    reasoningKey?: string
    adaptiveThinking?: boolean
    supportEfforts?: string[]
    defaultEffort?: string
    offEffort?: string
  }
  experimental: {
    [k: string]: boolean
  }
  model_catalog: {
    /** 0: off */
    refreshIntervalMs: number
    refreshOnStart: boolean
  }
  offline: boolean
  tools: {
    /** empty or absent: no limit; `mcp__` entries are globs */
    enabled?: string[]
    disabled?: string[]
  }
  image: {
    /** Longest edge of images that models get */
    maxEdgePx?: number
    /** Bytes of an image that ReadMediaFile answers */
    readByteBudget?: number
  }
}
export interface PostFilesBody {}
export interface PostFilesData {
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
export interface PostModelsModelIdSetDefaultData {
  default_model: string
  model: {
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
}
export interface PostOauthLoginBody {
  provider?: string
  /** Overrides the region for this flow, unless hosts are set by the environment */
  region?: 'mainland-cn' | 'global'
}
export interface PostOauthLogoutBody {
  provider?: string
}
export interface PostOauthLogoutData {
  logged_out: true
  provider: string
}
export interface PostProvidersBody {
  /** Letters, digits, -, _ and spaces; begins with a letter or digit */
  id: string
  /** Empty: none */
  api_key?: string
  /** Wire protocol */
  type: 'svc' | 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai' | 'compat_cloud'
  /** Trimmed; no placeholder of an environment variable */
  base_url?: string
  /** One of models[].model */
  default_model?: string
  /**
   * No duplicate model
   *
   */
  models: {
    /** The provider's own name for it; the alias becomes <provider_id>/<model> */
    model: string
    /** Tokens */
    max_context_size: number
    display_name?: string
    capabilities?: string[]
    /** Tokens */
    max_output_size?: number
    support_efforts?: string[]
    adaptive_thinking?: boolean
  }[]
}
export interface PostProvidersData {
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
export interface PostProvidersImportCatalogBody {
  /** Id from the directory */
  catalog_id: string
  /** Local provider id; default: the catalog_id */
  id?: string
  /** Omitted: a stored key is kept */
  api_key?: string
  /** Overrides the endpoint of the entry */
  base_url?: string
}
export interface PostProvidersImportCatalogData {
  provider: {
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
  /** Aliases written */
  models_imported: number
}
export interface PostProvidersImportRegistryBody {
  /** http(s) address of its api.json */
  url: string
  /** Bearer key; omitted: that of the earlier import */
  api_key?: string
}
export interface PostProvidersImportRegistryData {
  providers: {
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
  }[]
  /** Aliases written */
  models_imported: number
}
export interface PostProvidersProviderIdRefreshData {
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
export interface PostProvidersRefreshData {
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
export interface PostProvidersRefreshOauthData {
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
export interface PostSessionsBody {
  workspace_id?: string
  metadata?: {
    [k: string]: unknown
  }
  title?: string
  /** accepted, not applied */
  agent_config?: {
    [k: string]: unknown
  }
}
export interface PostSessionsData {
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
  pending_interaction: 'none' | 'approval' | 'question'
  last_turn_reason?: 'completed' | 'cancelled' | 'failed'
  last_prompt?: string
  /** custom metadata; always carries cwd */
  metadata: {
    [k: string]: unknown
  }
  agent_config: {
    model: string
  }
  usage: {
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
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface PostSessionsSessionIdAbortData {
  aborted: boolean
}
export interface PostSessionsSessionIdApprovalsApprovalIdBody {
  decision: 'approved' | 'rejected' | 'cancelled'
  /** with approved: remember for the rest of the session; else ignored */
  scope?: 'session'
  /** handed back to the agent */
  feedback?: string
  /** label of the chosen option when the request offers some */
  selected_label?: string
}
export interface PostSessionsSessionIdApprovalsApprovalIdData {
  resolved: true
  /** ISO 8601, UTC */
  resolved_at: string
}
export interface PostSessionsSessionIdArchiveData {
  archived: boolean
}
export interface PostSessionsSessionIdCompactBody {
  /** what the summary should mind; blank: nothing */
  instruction?: string
}
export interface PostSessionsSessionIdCompactData {}
export interface PostSessionsSessionIdProfileBody {
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
export interface PostSessionsSessionIdProfileData {
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
  pending_interaction: 'none' | 'approval' | 'question'
  last_turn_reason?: 'completed' | 'cancelled' | 'failed'
  last_prompt?: string
  /** custom metadata; always carries cwd */
  metadata: {
    [k: string]: unknown
  }
  agent_config: {
    model: string
  }
  usage: {
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
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface PostSessionsSessionIdPromptsBody {
  content: (
    | {
        type: 'text'
        text: string
      }
    | {
        type: 'image'
        source:
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
              file_id: string
            }
          | {
              kind: 'session_media'
              file_id: string
            }
      }
    | {
        type: 'video'
        source:
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
              file_id: string
            }
          | {
              kind: 'session_media'
              file_id: string
            }
      }
    | {
        type: 'file'
        file_id: string
        name: string
        media_type: string
        size: number
      }
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
  )[]
  agent_id?: string
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
export interface PostSessionsSessionIdPromptsData {
  prompt_id: string
  user_message_id: string
  status: 'running' | 'queued' | 'blocked'
  content: {
    type: string
    [k: string]: unknown
  }[]
  /** ISO 8601, UTC */
  created_at: string
}
export interface PostSessionsSessionIdPromptsPromptIdAbortData {
  aborted: boolean
}
export interface PostSessionsSessionIdPromptsPromptIdSteerData {
  steered: boolean
  prompt_ids: string[]
}
export interface PostSessionsSessionIdPromptsSteerBody {
  prompt_ids: string[]
}
export interface PostSessionsSessionIdPromptsSteerData {
  steered: boolean
  prompt_ids: string[]
}
export interface PostSessionsSessionIdQuestionsQuestionIdBody {
  /** item id to answer */
  answers: {
    [k: string]:
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
  }
  method?: 'enter' | 'space' | 'number_key' | 'click'
  /** handed to the agent beside the answers */
  note?: string
}
export interface PostSessionsSessionIdQuestionsQuestionIdData {
  resolved: true
  /** ISO 8601, UTC */
  resolved_at: string
}
export interface PostSessionsSessionIdQuestionsQuestionIdDismissData {
  dismissed: true
  /** ISO 8601, UTC */
  dismissed_at: string
}
export interface PostSessionsSessionIdRestoreData {
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
  pending_interaction: 'none' | 'approval' | 'question'
  last_turn_reason?: 'completed' | 'cancelled' | 'failed'
  last_prompt?: string
  /** custom metadata; always carries cwd */
  metadata: {
    [k: string]: unknown
  }
  agent_config: {
    model: string
  }
  usage: {
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
  permission_rules: unknown[]
  message_count: number
  last_seq: number
}
export interface PostSessionsSessionIdTasksTaskIdCancelData {
  cancelled: true
}
export interface PostSessionsSessionIdTasksTaskIdDetachData {
  /** false: it was not in the foreground */
  detached: boolean
  status: 'running' | 'completed' | 'failed' | 'cancelled'
}
export interface PostShutdownData {
  ok: true
}
export interface PostWorkspacesBody {
  /** Absolute path of an existing directory */
  root: string
  name?: string
}
export interface PostWorkspacesData {
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
export interface PostWorkspacesWorkspaceIdTrustData {
  trusted: true
}
export interface PostWorkspacesWorkspaceIdUntrustData {
  trusted: false
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
    /** Items: content part */
    content: {
      type: string
      [k: string]: unknown
    }[]
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
    /** Items: content part */
    content: {
      type: string
      [k: string]: unknown
    }[]
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
    /** Items: content part */
    content: {
      type: string
      [k: string]: unknown
    }[]
    createdAt: string
    type: 'prompt.submitted'
  }
}
export interface PutProvidersProviderIdBody {
  /** Letters, digits, -, _ and spaces; begins with a letter or digit */
  new_id?: string
  /** Omitted: kept; empty: cleared; else replaced */
  api_key?: string
  /** Wire protocol */
  type: 'svc' | 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai' | 'compat_cloud'
  /** Trimmed; no placeholder of an environment variable */
  base_url?: string
  /** One of models[].model */
  default_model?: string
  /**
   * No duplicate model
   *
   */
  models: {
    /** The provider's own name for it; the alias becomes <provider_id>/<model> */
    model: string
    /** Tokens */
    max_context_size: number
    display_name?: string
    capabilities?: string[]
    /** Tokens */
    max_output_size?: number
    support_efforts?: string[]
    adaptive_thinking?: boolean
  }[]
}
export interface PutProvidersProviderIdData {
  provider: {
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
    agentId: string
    sessionId: string
    /** instant of the fact, ms since 1970; then equal to timestamp */
    time?: number
    /** question_<uuid> */
    question_id: string
    session_id: string
    /** 0-based turn number */
    turn_id?: number
    tool_call_id?: string
    questions: {
      /** `q_<item>`, from 0 */
      id: string
      question: string
      header?: string
      body?: string
      options: {
        /** `opt_<item>_<option>`, from 0 */
        id: string
        label: string
        description?: string
      }[]
      multi_select?: boolean
      /** a text of the user is an answer, too */
      allow_other?: boolean
      other_label?: string
      other_description?: string
    }[]
    /** ISO 8601, UTC */
    created_at: string
    /** the question is withdrawn at this instant */
    expires_at?: string
    type: 'event.question.requested'
  }
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
    session: {
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
      pending_interaction: 'none' | 'approval' | 'question'
      last_turn_reason?: 'completed' | 'cancelled' | 'failed'
      last_prompt?: string
      /** custom metadata; always carries cwd */
      metadata: {
        [k: string]: unknown
      }
      agent_config: {
        model: string
      }
      usage: {
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
      permission_rules: unknown[]
      message_count: number
      last_seq: number
    }
    type: 'event.session.created'
  }
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
    pending_interaction: 'none' | 'approval' | 'question'
    last_turn_reason?: 'completed' | 'cancelled' | 'failed'
    type: 'event.session.work_changed'
  }
}
export interface SubscribeAck {
  accepted: string[]
  not_found: string[]
  resync_required: string[]
  cursors: {
    [k: string]: {
      seq: number
      epoch: string
    }
  }
}
export interface SubscribeRequest {
  session_ids: string[]
  /** Last durable event applied, per session */
  cursors?: {
    [k: string]: {
      seq: number
      epoch?: string
    }
  }
  /** Whom to show, per session; empty shows all */
  agent_filter?: {
    [k: string]: string[]
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
    info:
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
    info:
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
    type: 'task.terminated'
  }
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
  /** length of the streamed text before this chunk, UTF-16 units */
  offset?: number
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
    type: 'tool.call.started'
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
    update: {
      kind: 'stdout' | 'stderr' | 'progress' | 'status' | 'custom'
      text?: string
      percent?: number
      customKind?: string
      customData?: unknown
      replace?: boolean
    }
    type: 'tool.progress'
  }
  /** length of the streamed text before this chunk, UTF-16 units */
  offset?: number
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
    output:
      | string
      | {
          type: string
          [k: string]: unknown
        }[]
    isError?: true
    synthetic?: true
    type: 'tool.result'
  }
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
    error?: {
      code: string
      message: string
      name?: string
      details?: {
        [k: string]: unknown
      }
      retryable: boolean
      cause?: unknown
    }
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
    usage?: {
      inputOther: number
      output: number
      inputCacheRead: number
      inputCacheCreation: number
    }
    finishReason?: string
    providerFinishReason?: string
    rawFinishReason?: string
    llmFirstTokenLatencyMs?: number
    llmStreamDurationMs?: number
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
export interface UnsubscribeAck {
  accepted: string[]
  not_found: string[]
  resync_required: string[]
}
export interface UnsubscribeRequest {
  session_ids: string[]
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
    workspace: {
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
    workspace: {
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
      responses: { 200: Content<Success<GetAuthData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/catalog/providers': {
    get: {
      responses: { 200: Content<Success<GetCatalogProvidersData> | Failure<40001 | 50001 | 50003 | 50004>> } & Refused
    }
  }
  '/api/v1/catalog/providers/{catalog_id}': {
    get: {
      parameters: { path: { catalog_id: string } }
      responses: { 200: Content<Success<GetCatalogProvidersCatalogIdData> | Failure<40001 | 40417 | 50001 | 50003 | 50004>> } & Refused
    }
  }
  '/api/v1/config': {
    get: {
      responses: { 200: Content<Success<GetConfigData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': PostConfigBody } }
      responses: { 200: Content<Success<PostConfigData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/connections': {
    get: {
      responses: { 200: Content<Success<GetConnectionsData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/files': {
    post: {
      requestBody: { content: { 'multipart/form-data': PostFilesBody } }
      responses: { 200: Content<Success<PostFilesData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/files/{file_id}': {
    get: {
      parameters: { path: { file_id: string } }
      responses: { 200: Content<Failure<40001 | 50001 | 50003>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'> } & Refused
    }
    delete: {
      parameters: { path: { file_id: string } }
      responses: { 200: Content<Success<DeleteFilesFileIdData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/healthz': {
    get: {
      responses: { 200: Content<Success<GetHealthzData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/meta': {
    get: {
      responses: { 200: Content<Success<GetMetaData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/models': {
    get: {
      responses: { 200: Content<Success<GetModelsData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/models/{model_id}:set_default': {
    post: {
      parameters: { path: { model_id: string } }
      responses: { 200: Content<Success<PostModelsModelIdSetDefaultData> | Failure<40001 | 40413 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/oauth/login': {
    get: {
      parameters: { query?: GetOauthLoginQuery }
      responses: { 200: Content<Success<GetOauthLoginData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': PostOauthLoginBody } }
      responses: { 200: Content<Success<PostOauthLoginData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
    delete: {
      parameters: { query?: DeleteOauthLoginQuery }
      responses: { 200: Content<Success<DeleteOauthLoginData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/oauth/logout': {
    post: {
      requestBody: { content: { 'application/json': PostOauthLogoutBody } }
      responses: { 200: Content<Success<PostOauthLogoutData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/oauth/region': {
    get: {
      responses: { 200: Content<Success<GetOauthRegionData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/oauth/usage': {
    get: {
      parameters: { query?: GetOauthUsageQuery }
      responses: { 200: Content<Success<GetOauthUsageData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/oauth/userinfo': {
    get: {
      parameters: { query?: GetOauthUserinfoQuery }
      responses: { 200: Content<Success<GetOauthUserinfoData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/providers': {
    get: {
      responses: { 200: Content<Success<GetProvidersData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': PostProvidersBody } }
      responses: { 200: Content<Failure<40001 | 40921 | 50001 | 50003>>; 201: Content<Success<PostProvidersData>> } & Refused
    }
  }
  '/api/v1/providers/{provider_id}': {
    get: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Success<GetProvidersProviderIdData> | Failure<40001 | 40412 | 50001 | 50003>> } & Refused
    }
    put: {
      parameters: { path: { provider_id: string } }
      requestBody: { content: { 'application/json': PutProvidersProviderIdBody } }
      responses: { 200: Content<Success<PutProvidersProviderIdData> | Failure<40001 | 40003 | 40412 | 40921 | 50001 | 50003>> } & Refused
    }
    delete: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Failure<40001 | 40003 | 40412 | 50001 | 50003>>; 204: { content?: never } } & Refused
    }
  }
  '/api/v1/providers/{provider_id}:refresh': {
    post: {
      parameters: { path: { provider_id: string } }
      responses: { 200: Content<Success<PostProvidersProviderIdRefreshData> | Failure<40001 | 40412 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/providers:import_catalog': {
    post: {
      requestBody: { content: { 'application/json': PostProvidersImportCatalogBody } }
      responses: { 200: Content<Failure<40001 | 40003 | 40004 | 40417 | 50001 | 50003 | 50004>>; 201: Content<Success<PostProvidersImportCatalogData>> } & Refused
    }
  }
  '/api/v1/providers:import_registry': {
    post: {
      requestBody: { content: { 'application/json': PostProvidersImportRegistryBody } }
      responses: { 200: Content<Failure<40001 | 40003 | 40005 | 50001 | 50003>>; 201: Content<Success<PostProvidersImportRegistryData>> } & Refused
    }
  }
  '/api/v1/providers:refresh': {
    post: {
      responses: { 200: Content<Success<PostProvidersRefreshData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/providers:refresh_oauth': {
    post: {
      responses: { 200: Content<Success<PostProvidersRefreshOauthData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions': {
    get: {
      parameters: { query?: GetSessionsQuery }
      responses: { 200: Content<Success<GetSessionsData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': PostSessionsBody } }
      responses: { 200: Content<Success<PostSessionsData> | Failure<40001 | 40409 | 40410 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/approvals': {
    get: {
      parameters: { path: { session_id: string }; query: GetSessionsSessionIdApprovalsQuery }
      responses: { 200: Content<Success<GetSessionsSessionIdApprovalsData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/approvals/{approval_id}': {
    post: {
      parameters: { path: { session_id: string; approval_id: string } }
      requestBody: { content: { 'application/json': PostSessionsSessionIdApprovalsApprovalIdBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdApprovalsApprovalIdData> | Failure<40001 | 40401 | 40404 | 40901 | 40902 | 41001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/media/{file_id}': {
    get: {
      parameters: { path: { session_id: string; file_id: string } }
      responses: { 200: Content<Failure<40001 | 50001 | 50003>> & Content<unknown, '*/*'>; 206: Content<unknown, '*/*'> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/messages': {
    get: {
      parameters: { path: { session_id: string }; query?: GetSessionsSessionIdMessagesQuery }
      responses: { 200: Content<Success<GetSessionsSessionIdMessagesData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/messages/{message_id}': {
    get: {
      parameters: { path: { session_id: string; message_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdMessagesMessageIdData> | Failure<40001 | 40401 | 40403 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/profile': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdProfileData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': PostSessionsSessionIdProfileBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdProfileData> | Failure<40001 | 40401 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdPromptsData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': PostSessionsSessionIdPromptsBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdPromptsData> | Failure<40001 | 40110 | 40111 | 40112 | 40113 | 40401 | 40407 | 40415 | 40901 | 40903 | 40912 | 40927 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts/{prompt_id}:abort': {
    post: {
      parameters: { path: { session_id: string; prompt_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdPromptsPromptIdAbortData> | Failure<40001 | 40401 | 40402 | 40901 | 40903 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts/{prompt_id}:steer': {
    post: {
      parameters: { path: { session_id: string; prompt_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdPromptsPromptIdSteerData> | Failure<40001 | 40401 | 40402 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/prompts:steer': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody: { content: { 'application/json': PostSessionsSessionIdPromptsSteerBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdPromptsSteerData> | Failure<40001 | 40401 | 40402 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions': {
    get: {
      parameters: { path: { session_id: string }; query: GetSessionsSessionIdQuestionsQuery }
      responses: { 200: Content<Success<GetSessionsSessionIdQuestionsData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions/{question_id}': {
    post: {
      parameters: { path: { session_id: string; question_id: string } }
      requestBody: { content: { 'application/json': PostSessionsSessionIdQuestionsQuestionIdBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdQuestionsQuestionIdData> | Failure<40001 | 40401 | 40405 | 40901 | 40902 | 41002 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/questions/{question_id}:dismiss': {
    post: {
      parameters: { path: { session_id: string; question_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdQuestionsQuestionIdDismissData, 40909> | Failure<40001 | 40401 | 40405 | 40901 | 40902 | 41002 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/snapshot': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdSnapshotData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/status': {
    get: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<GetSessionsSessionIdStatusData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks': {
    get: {
      parameters: { path: { session_id: string }; query?: GetSessionsSessionIdTasksQuery }
      responses: { 200: Content<Success<GetSessionsSessionIdTasksData> | Failure<40001 | 40401 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}': {
    get: {
      parameters: { path: { session_id: string; task_id: string }; query?: GetSessionsSessionIdTasksTaskIdQuery }
      responses: { 200: Content<Success<GetSessionsSessionIdTasksTaskIdData> | Failure<40001 | 40401 | 40406 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}:cancel': {
    post: {
      parameters: { path: { session_id: string; task_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdTasksTaskIdCancelData> | Failure<40001 | 40401 | 40406 | 40901 | 40904 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}/tasks/{task_id}:detach': {
    post: {
      parameters: { path: { session_id: string; task_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdTasksTaskIdDetachData> | Failure<40001 | 40401 | 40406 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:abort': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdAbortData> | Failure<40001 | 40401 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:archive': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdArchiveData> | Failure<40001 | 40401 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:compact': {
    post: {
      parameters: { path: { session_id: string } }
      requestBody?: { content: { 'application/json': PostSessionsSessionIdCompactBody } }
      responses: { 200: Content<Success<PostSessionsSessionIdCompactData> | Failure<40001 | 40401 | 40901 | 40910 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/sessions/{session_id}:restore': {
    post: {
      parameters: { path: { session_id: string } }
      responses: { 200: Content<Success<PostSessionsSessionIdRestoreData> | Failure<40001 | 40401 | 40901 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/shutdown': {
    post: {
      responses: { 200: Content<Success<PostShutdownData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/tools': {
    get: {
      parameters: { query?: GetToolsQuery }
      responses: { 200: Content<Success<GetToolsData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/workspaces': {
    get: {
      responses: { 200: Content<Success<GetWorkspacesData> | Failure<40001 | 50001 | 50003>> } & Refused
    }
    post: {
      requestBody: { content: { 'application/json': PostWorkspacesBody } }
      responses: { 200: Content<Success<PostWorkspacesData> | Failure<40001 | 40409 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}': {
    patch: {
      parameters: { path: { workspace_id: string } }
      requestBody: { content: { 'application/json': PatchWorkspacesWorkspaceIdBody } }
      responses: { 200: Content<Success<PatchWorkspacesWorkspaceIdData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
    delete: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<DeleteWorkspacesWorkspaceIdData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}/trust': {
    get: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<GetWorkspacesWorkspaceIdTrustData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
    post: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<PostWorkspacesWorkspaceIdTrustData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
  }
  '/api/v1/workspaces/{workspace_id}/untrust': {
    post: {
      parameters: { path: { workspace_id: string } }
      responses: { 200: Content<Success<PostWorkspacesWorkspaceIdUntrustData> | Failure<40001 | 40410 | 50001 | 50003>> } & Refused
    }
  }
  '/asyncapi.json': {
    get: {
      responses: { 200: Content<unknown | Failure<40001 | 50001 | 50003>> } & Refused
    }
  }
  '/openapi.json': {
    get: {
      responses: { 200: Content<unknown | Failure<40001 | 50001 | 50003>> } & Refused
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
  'error': ErrorEvent
  'event.approval.requested': ApprovalRequestedEvent
  'event.approval.resolved': ApprovalResolvedEvent
  'event.config.changed': ConfigChangedEvent
  'event.model_catalog.changed': ModelCatalogChangedEvent
  'event.question.answered': QuestionAnsweredEvent
  'event.question.dismissed': QuestionDismissedEvent
  'event.question.requested': QuestionRequestedEvent
  'event.session.archived': SessionArchivedEvent
  'event.session.created': SessionCreatedEvent
  'event.session.work_changed': SessionWorkChangedEvent
  'event.workspace.created': WorkspaceCreatedEvent
  'event.workspace.deleted': WorkspaceDeletedEvent
  'event.workspace.updated': WorkspaceUpdatedEvent
  'hook.result': HookResultEvent
  'prompt.aborted': PromptAbortedEvent
  'prompt.completed': PromptCompletedEvent
  'prompt.queued': PromptQueuedEvent
  'prompt.steered': PromptSteeredEvent
  'prompt.submitted': PromptSubmittedEvent
  'session.meta.updated': SessionMetaUpdatedEvent
  'task.started': TaskStartedEvent
  'task.terminated': TaskTerminatedEvent
  'thinking.delta': ThinkingDeltaEvent
  'tool.call.delta': ToolCallDeltaEvent
  'tool.call.started': ToolCallStartedEvent
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
}

/** Control frames: what is sent, and the payload of the ack. */
export interface Requests {
  'client_hello': { payload: ClientHelloRequest; ack: ClientHelloAck }
  'subscribe': { payload: SubscribeRequest; ack: SubscribeAck }
  'unsubscribe': { payload: UnsubscribeRequest; ack: UnsubscribeAck }
}

/** Any event. */
export type EventFrame = Events[keyof Events]

/** Any frame of the server but an ack. */
export type ServerFrame = EventFrame | SystemFrames[keyof SystemFrames]
