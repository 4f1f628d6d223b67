/** The `config.toml` of a home whose default model is a scripted provider. */

export interface ModelConfig {
  readonly key?: string
  readonly model?: string
  readonly max_context_size?: number
  /** Further lines of the model's table. */
  readonly more?: string
}

/** `url`: base URL of the fake upstream. */
export function modelConfig(url: string, given: ModelConfig = {}): string {
  const { key = 'secret-key', model = 'upstream-model', max_context_size = 64_000, more = '' } = given
  return `default_model = "m"
[providers.p]
type = "compat_chat"
base_url = "${url}"
api_key = "${key}"
[models.m]
provider = "p"
model = "${model}"
max_context_size = ${max_context_size}
${more}
`
}
