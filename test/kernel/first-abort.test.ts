/** Signals that follow several others for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstAbort } from '../../kernel/index.ts'
import { keptOf } from '../helpers/collected.ts'

test('it aborts with the first of its sources, with that reason, also when one had aborted before', () => {
  const [one, two] = [new AbortController(), new AbortController()]
  const { signal } = firstAbort(one.signal, two.signal)
  assert.equal(signal.aborted, false)
  two.abort('two')
  one.abort('one')
  assert.equal(signal.reason, 'two')
  assert.equal(firstAbort(new AbortController().signal, one.signal).signal.reason, 'one')
})

test('after its end it follows none of them', () => {
  const source = new AbortController()
  const { signal, end } = firstAbort(source.signal)
  end()
  source.abort()
  assert.equal(signal.aborted, false)
})

test('whoever listens to it and never stops is let go of with it, while a source lives on', async () => {
  const source = new AbortController()
  const listen = () => {
    const { signal, end } = firstAbort(source.signal, new AbortController().signal)
    const listener = () => undefined
    signal.addEventListener('abort', listener)
    end()
    return [new WeakRef(listener), new WeakRef(signal)]
  }
  assert.equal(await keptOf([...listen(), ...listen()]), 0)
  assert.equal(source.signal.aborted, false)
})
