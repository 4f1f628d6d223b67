/** What is said of packs that run in processes of their own. */

export interface Limits {
  /** Memory of the process, MB; its heap gets three quarters of it. */
  readonly memory_mb: number
  /** How long it may answer nothing, s. */
  readonly hang_s: number
}

export interface IsolationOptions extends Limits {
  /** How often in a row its process is started again after it ended by itself; then the pack stays Failed. */
  readonly restarts: number
}

/** Which packs of `[packs] load` run in processes of their own, and how. */
export interface Isolation {
  /** Names; true: all of them. */
  readonly isolate?: boolean | readonly string[] | undefined
  readonly isolation?: IsolationOptions | undefined
}

export const isolationDefaults: IsolationOptions = { memory_mb: 512, hang_s: 5, restarts: 10 }
