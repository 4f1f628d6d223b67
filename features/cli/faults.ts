/** Errors of this process that nobody caught: put down to the pack that they come from, and told in the log. */
import type { Kernel } from '../../kernel/kernel.ts'
import { culprit } from './culprit.ts'
import { isOfImport } from './import-watch.ts'

/**
 * Puts what escaped from a callback down to the pack that its stack names, see `Pack.source`. `exception`: it was thrown, not a rejected
 * promise that nobody waited for. `contained`: the server may go on.
 */
export function escaped(
  kernel: Kernel,
  error: unknown,
  exception: boolean
): { readonly pack: string | undefined; readonly contained: boolean } {
  const found = culprit(error, kernel.packs())
  return { pack: found?.pack, contained: found ? kernel.escaped(found, error, exception) : !exception }
}

/** What escapes before there is a log, from imports as a rule: told when there is one. */
export function collectFaults() {
  const rejected: unknown[] = []
  const thrown: unknown[] = []
  const hearRejected = (err: unknown) => void rejected.push(err)
  const hearThrown = (err: unknown) => void (isOfImport(err) || thrown.push(err))
  process.on('unhandledRejection', hearRejected)
  process.on('uncaughtException', hearThrown)
  return {
    tell(faults: ReturnType<typeof onFaults>) {
      process.off('unhandledRejection', hearRejected)
      process.off('uncaughtException', hearThrown)
      for (const err of rejected) faults.rejected(err)
      for (const err of thrown) faults.thrown(err)
    }
  }
}

/**
 * Faults that escaped from a pack, which is named where the stack tells it. A promise nobody waited for costs nobody else anything. An exception
 * out of a callback that ran through one pack alone takes that pack out; after any other the state is unknown: the server stops in good
 * order, so that turns are settled and journals flushed.
 */
export function onFaults(kernel: Kernel) {
  let fatal = false
  const rejected = (err: unknown) => {
    if (escaped(kernel, err, false).pack === undefined) kernel.log.error({ err }, 'a rejected promise was not handled')
  }
  const thrown = (err: unknown) => {
    if (isOfImport(err)) return
    const { pack, contained } = escaped(kernel, err, true)
    if (contained) return
    kernel.log.fatal({ err, ...(pack === undefined ? {} : { pack }) }, 'an exception was not handled; the server stops')
    const where = pack === undefined ? '' : ` in pack ${pack}`
    if (!fatal) process.stderr.write(`svc-code: stopping after an internal error${where}; the log has it\n`)
    fatal = true
    void kernel.stop()
  }
  process.on('unhandledRejection', rejected)
  process.on('uncaughtException', thrown)
  return {
    fatal: () => fatal,
    rejected,
    thrown,
    end() {
      process.off('unhandledRejection', rejected)
      process.off('uncaughtException', thrown)
    }
  }
}
