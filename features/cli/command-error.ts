/** A failure of a command that a person can understand without a stack; ends it with code 1, or with `exitCode`. */
export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
