#!/usr/bin/env node
/** The command line `svc-code`. Exit codes: 0 done, 1 failed, 2 the command line was not understood. */
import { assertDescriptors, tooFewDescriptors } from './cli/descriptors.ts'
import { helpText, parseCommandLine, UsageError } from './cli/options.ts'
import { productVersion } from './cli/version.ts'

async function main(args: readonly string[]): Promise<number> {
  const line = parseCommandLine(args)
  const out = (text: string) => {
    process.stdout.write(text)
  }
  if (line.command !== 'help' && line.command !== 'version') assertDescriptors()
  switch (line.command) {
    case 'help':
      out(helpText(productVersion()))
      return 0
    case 'version':
      out(`${productVersion()}\n`)
      return 0
    case 'serve':
      return (await import('./cli/serve.ts')).serve(line.flags, process.env, out)
    case 'doctor':
      out(await (await import('./cli/doctor.ts')).network(line.flags, process.env))
      return 0
    default: {
      const commands = await import('./cli/inspect.ts')
      if (line.command === 'token') out(await commands.token(line.words, line.flags, process.env))
      else if (line.command === 'packs') out(await commands.packs(line.flags, process.env))
      else out(await commands.instances(line.flags, process.env))
      return 0
    }
  }
}

// Whoever started the server may have read the address and gone: a closed pipe must not end it.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

main(process.argv.slice(2)).then(
  code => process.exit(code),
  (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error)
    process.stderr.write(`svc-code: ${(error as NodeJS.ErrnoException).code === 'EMFILE' ? tooFewDescriptors() : text}\n`)
    process.exit(error instanceof UsageError ? 2 : 1)
  }
)
