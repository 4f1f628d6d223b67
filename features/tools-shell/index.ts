/** Public face of the tools-shell pack: it contributes a tool, and runs commands for other packs. */
export { bashParameters } from './contract.ts'
export { type Program, type ProgramRun, Shell, type ShellResult, type ShellRun } from './shell.ts'
export { signalSession } from './strays.ts'
