/**
 * Checks what the linter cannot: abort signals, computed imports, error codes, unused dependencies, open ends, anatomy of packs, types of the client.
 * (biome.json has the import edges and circles.) `node .ci/check.mjs [root]` prints one line per finding, `file:line text`; exit code 1
 * when there is any.
 */
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkAbortSignals } from './abort-signals.mjs'
import { checkClientTypes } from './client-types.mjs'
import { checkComputedImports } from './computed-imports.mjs'
import { checkDependencies } from './dependencies.mjs'
import { checkErrorCodes } from './error-codes.mjs'
import { checkPacks } from './packs.mjs'
import { readTree } from './tree.mjs'
import { checkWords } from './words.mjs'

const checks = [checkAbortSignals, checkComputedImports, checkErrorCodes, checkDependencies, checkWords, checkPacks, checkClientTypes]

const root = resolve(process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url))))
const tree = readTree(root)
const findings = (await Promise.all(checks.map(check => check(tree)))).flat()
for (const { file, line, text } of findings) process.stderr.write(`${file}:${line} ${text}\n`)
if (findings.length > 0) process.stderr.write(`${findings.length} ${findings.length === 1 ? 'finding' : 'findings'}\n`)
else process.stdout.write(`architecture: ${tree.files.size} files, ${tree.packs.length} packs, nothing found\n`)
process.exitCode = findings.length > 0 ? 1 : 0
