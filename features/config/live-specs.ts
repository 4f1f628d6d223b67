/** The routes and the event with the inner shape of every domain that some pack contributes. */
import { Type } from '../../kernel/index.ts'
import { ConfigObject, ConfigPatch, configChanged, patchConfig, readConfig } from './contract.ts'
import type { ConfigSection } from './service.ts'
import { answerSchema, patchSchema } from './wire-schema.ts'

/** Refines the declared specs, so they keep their static types. Shapes are made at first use after a change of the sections. */
export class LiveSpecs {
  readonly #sections: () => readonly ConfigSection[]
  #shapes:
    | { readonly answer: typeof ConfigObject; readonly patch: typeof ConfigPatch; readonly change: typeof configChanged.payload }
    | undefined

  constructor(sections: () => readonly ConfigSection[]) {
    this.#sections = sections
  }

  /** Sections came or went. */
  changed(): void {
    this.#shapes = undefined
  }

  get read(): typeof readConfig {
    const shapes = () => this.#now()
    return {
      ...readConfig,
      get data() {
        return shapes().answer
      }
    }
  }

  get patch(): typeof patchConfig {
    const shapes = () => this.#now()
    return {
      ...patchConfig,
      get body() {
        return shapes().patch
      },
      get data() {
        return shapes().answer
      }
    }
  }

  get change(): typeof configChanged {
    const shapes = () => this.#now()
    return {
      ...configChanged,
      get payload() {
        return shapes().change
      }
    }
  }

  #now() {
    if (!this.#shapes) {
      const answer = answerSchema(ConfigObject, this.#sections()) as unknown as typeof ConfigObject
      const patch = patchSchema(ConfigPatch, this.#sections()) as unknown as typeof ConfigPatch
      const change = Type.Object({ ...configChanged.payload.properties, config: answer })
      this.#shapes = { answer, patch, change }
    }
    return this.#shapes
  }
}
