/** Wires the key/value store of clients. */
import { definePack, invalid } from '../../kernel/index.ts'
import { clearItems, getItem, itemStore, readLength, removeItem, setItem } from './contract.ts'

export default definePack({
  name: 'gui-store',
  description: 'A key/value store for clients, like the local storage of browsers',
  area: 'Server',
  setup(ctx) {
    const items = ctx.store(itemStore)
    ctx.route(readLength, async () => ({ length: (await items.keys()).length }))
    ctx.route(getItem, async ({ query: { key } }) => ({ value: (await items.get(key)) ?? null }))
    ctx.route(setItem, async ({ body: { key, value } }) => {
      if (/\p{Surrogate}/u.test(key)) throw invalid([{ path: 'body.key', message: 'must not contain half a surrogate pair' }])
      await items.put(key, value)
      return null
    })
    ctx.route(removeItem, async ({ body: { key } }) => {
      if (!/\p{Surrogate}/u.test(key)) await items.delete(key) // no item has such a key
      return null
    })
    ctx.route(clearItems, async () => {
      const keys = await items.keys()
      await items.batch(keys.map(key => ({ type: 'delete', key })))
      return null
    })
  }
})
