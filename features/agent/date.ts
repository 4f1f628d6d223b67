/** Tells the model today's date: at the first step of a conversation and whenever the local date has changed since. */
import type { StepInjector } from './service.ts'

export function dateInjector(now: () => Date): StepInjector {
  return {
    variant: 'date_change',
    inject(_info, history) {
      const date = localDate(now())
      const last = history.messages().findLast(message => message.origin?.variant === 'date_change')
      if (last?.origin?.date === date) return undefined
      return { text: `Today is ${date}.`, facts: { date } }
    }
  }
}

/** `YYYY-MM-DD` in the server's time zone. */
export function localDate(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}
