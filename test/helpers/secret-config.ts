/** A configuration with a secret in every place that a user may put one, and the environment that goes with it. */
import type { Secrets } from './secrets.ts'

/** TOML text of a value; JSON strings are TOML strings. */
export function toml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([name, item]) => `${key(name)} = ${toml(item)}`)
    .join(', ')} }`
}

const key = (name: string) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name))

/** A file of top-level keys, one inline value each (a table of tables becomes one section per row). */
export function tomlFile(value: Readonly<Record<string, unknown>>): string {
  const isTable = (item: unknown) => typeof item === 'object' && !Array.isArray(item)
  const entries = Object.entries(value)
  const rows = (table: object) => Object.entries(table).map(([name, item]) => `${key(name)} = ${toml(item)}`)
  return [
    ...rows(Object.fromEntries(entries.filter(([, item]) => !isTable(item)))),
    ...entries.filter(([, item]) => isTable(item)).flatMap(([name, item]) => [`[${key(name)}]`, ...rows(item as object)]),
    ''
  ].join('\n')
}

/** Hosts end in `.invalid`: nobody is reached. */
export function secretConfig(s: Secrets): Record<string, unknown> {
  return {
    api_key: s.seed('top api_key'),
    default_model: 'plain/m',
    providers: {
      plain: {
        type: 'compat_chat',
        base_url: `https://me:${s.seed('base_url password')}@plain.invalid/v1?api_key=${s.seed('base_url key')}&api-version=2`,
        api_key: s.seed('provider api_key', 'awkward'),
        custom_headers: { 'X-Auth': s.seed('provider custom header'), Authorization: `Bearer ${s.seed('provider authorization header')}` },
        env: { PLAIN_API_KEY: s.seed('provider env key'), PLAIN_ANYTHING: s.seed('provider env value') },
        source: {
          kind: 'apiJson',
          url: `https://u:${s.seed('source url password')}@registry.invalid/api.json?token=${s.seed('source url token')}`,
          api_key: s.seed('source api_key')
        }
      },
      by_env: {
        type: 'compat_messages',
        env: {
          X_API_KEY: s.seed('key of env only'),
          X_BASE_URL: `https://:${s.seed('env base_url password')}@env.invalid/?sig=${s.seed('env base_url sig')}`
        }
      },
      token: { type: 'svc', api_key: s.seed('key of a provider called token'), base_url: 'https://t.invalid' },
      'managed:svc-code': {
        type: 'svc',
        base_url: `https://x:${s.seed('managed base_url password')}@api.invalid/v1`,
        oauth: { storage: 'file', key: 'svc-code', oauth_host: `https://y:${s.seed('oauth_host password')}@login.invalid` }
      },
      strange: {
        type: 'compat_chat',
        base_url: `https://h.invalid/v1?subscription-key=${s.seed('url subscription key')}&code=${s.seed('url code')}#access_token=${s.seed('url fragment')}`,
        service_account: {
          private_key: `-----BEGIN PRIVATE KEY-----\n${s.seed('private key')}\n-----END PRIVATE KEY-----`,
          client_email: 'a@b'
        },
        service_account_json: JSON.stringify({ private_key: s.seed('private key in a text'), n: 1 }),
        client_secret: s.seed('client secret'),
        api_keys: [s.seed('one of several keys')],
        note: `use Bearer ${s.seed('bearer in a note')}`,
        mirrors: [`https://m:${s.seed('mirror password')}@mirror.invalid/v1`]
      }
    },
    models: {
      'plain/m': {
        provider: 'plain',
        model: 'm',
        max_context_size: 1000,
        api_key: s.seed('model api_key'),
        custom_headers: { 'X-Model': s.seed('model custom header') },
        base_url: `https://q:${s.seed('model base_url password')}@model.invalid/v1?access_token=${s.seed('model base_url token')}`,
        overrides: { api_key: s.seed('override api_key'), oauth: { storage: 'file', key: 'x' } }
      }
    },
    services: {
      svc_search: {
        base_url: `https://k:${s.seed('service base_url password')}@search.invalid`,
        api_key: s.seed('service api_key'),
        custom_headers: { Cookie: s.seed('service cookie') }
      },
      other: { access_token: s.seed('unknown service token') }
    },
    secondary_model: { model: 'plain/m', api_key: s.seed('secondary api_key'), overrides: { token: s.seed('secondary token') } },
    hooks: [
      {
        event: 'Stop',
        command: `curl -H "Authorization: Bearer ${s.seed('hook bearer')}" https://u:${s.seed('hook password')}@hook.invalid/?token=${s.seed('hook token')}`
      },
      { event: 'Stop', command: `DEPLOY_TOKEN=${s.seed('hook environment')} ./deploy --quiet` }
    ],
    extra_skill_dirs: [`https://s:${s.seed('skill dir password')}@skills.invalid/x.git`],
    mcp: {
      servers: {
        one: {
          url: `https://mcp.invalid/sse?apiKey=${s.seed('mcp url key')}`,
          headers: { 'X-Any': s.seed('mcp header') },
          env: { ANY: s.seed('mcp env') },
          args: ['--api-key', s.seed('mcp argument'), `--token=${s.seed('mcp argument with =')}`],
          bearerToken: s.seed('mcp bearer')
        }
      }
    },
    unknown: {
      deep: [
        {
          list: [
            { Password: s.seed('deep password') },
            { 'x-api-key': s.seed('deep x-api-key'), 'set-cookie': s.seed('deep set-cookie') },
            { clientSecret: s.seed('deep client secret'), secrets: { a: s.seed('deep secrets') } },
            { accessKeyId: 'public', secretAccessKey: s.seed('deep secret access key'), passwords: [s.seed('deep passwords')] },
            { jwt: s.seed('deep jwt'), pat: s.seed('deep pat'), secret_value: 7 }
          ]
        }
      ],
      'proxy-authorization': s.seed('proxy authorization'),
      session_token: s.seed('session token'),
      tokens: [s.seed('one of several tokens')],
      connection: `postgres://db:${s.seed('database password')}@db.invalid/x`
    },
    packs: {
      config: {
        oauth: { client_id: 'client-1' },
        agent: { retry_base_ms: 0 },
        elsewhere: { client_secret: s.seed('option of a pack'), url: `https://p:${s.seed('password in an option')}@pack.invalid` }
      }
    }
  }
}

/** Variables that the server reads. Proxies lead nowhere. */
export function secretEnvironment(s: Secrets): Record<string, string> {
  const proxy = `http://proxy:${s.seed('proxy password')}@127.0.0.1:9`
  return {
    SVC_CODE_PASSWORD: s.seed('server password'),
    SVC_CODE_MODEL_NAME: 'from-env',
    SVC_CODE_MODEL_API_KEY: s.seed('environment api key', 'awkward'),
    SVC_CODE_MODEL_BASE_URL: `https://e:${s.seed('environment base_url password')}@e.invalid/v1?key=${s.seed('environment base_url key')}`,
    SVC_CODE_WEB_SEARCH_BASE_URL: `https://w:${s.seed('search url password')}@w.invalid`,
    SVC_CODE_WEB_SEARCH_API_KEY: s.seed('search api key'),
    SVC_CODE_WEB_FETCH_API_KEY: s.seed('fetch api key'),
    SVC_CODE_CATALOG_URL: `https://c:${s.seed('catalog url password')}@catalog.invalid/api.json?token=${s.seed('catalog url token')}`,
    HTTPS_PROXY: proxy,
    HTTP_PROXY: proxy,
    NO_PROXY: ''
  }
}
