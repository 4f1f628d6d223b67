/** The command line `svc-code`. Exit codes: 0 done, 1 failed, 2 the command line was not understood; `svc-code run --help` has more. */
import { execute } from './cli/execute.ts'
import { processIo } from './cli/io.ts'

// Whoever started the server may have read the address and gone: a closed pipe must not end it.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

void execute(process.argv.slice(2), processIo()).then(code => process.exit(code))
