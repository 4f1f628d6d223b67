/** The hooks of turns, made anew with every activation of the pack. */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import type { TurnHooks, TurnInfo } from './service.ts'

export function createTurnHooks(): TurnHooks {
  return {
    beforeStep: new AsyncSeriesWaterfallHook<[LlmRequest, TurnInfo]>(['request', 'info']),
    modelError: new AsyncSeriesBailHook<[LlmError, TurnInfo], 'retry' | 'fail'>(['error', 'info']),
    shouldContinue: new AsyncSeriesBailHook(['info']),
    afterStep: new AsyncSeriesHook(['info']),
    turnEnd: new AsyncSeriesHook(['info'])
  }
}
