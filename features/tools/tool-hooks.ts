/** The hooks around a tool call, made anew with every activation of the pack. */
import { AsyncSeriesBailHook, AsyncSeriesWaterfallHook } from 'tapable'
import type { ToolCallContext, ToolHooks, ToolResult, ToolVerdict } from './service.ts'

export function createToolHooks(): ToolHooks {
  return {
    before: new AsyncSeriesBailHook<[ToolCallContext], ToolVerdict | undefined>(['context']),
    after: new AsyncSeriesWaterfallHook<[ToolResult, ToolCallContext]>(['result', 'context'])
  }
}
