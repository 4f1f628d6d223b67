/** Notices edits of the files that count for a working directory: by hand, or by another server of the home. */
import { watchConfig } from '../config/index.ts'

export class LayerWatch {
  readonly #changed: () => void
  readonly #undos = new Map<string, () => void>()

  constructor(changed: () => void) {
    this.#changed = changed
  }

  /** These are the files from now on. One call at a time. */
  async follow(files: readonly string[]): Promise<void> {
    for (const [file, undo] of this.#undos) {
      if (files.includes(file)) continue
      this.#undos.delete(file)
      undo()
    }
    for (const file of files) if (!this.#undos.has(file)) this.#undos.set(file, await watchConfig(file, this.#changed))
  }
}
