/** How hard a model thinks: who decides, and what a model can do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkEffort, chooseEffort, defaultEffort, samplingOf } from '../../../features/llm/effort.ts'
import type { ResolvedModel } from '../../../features/llm/index.ts'
import { ValidationFailed } from '../../../kernel/index.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = (fields: Partial<ResolvedModel>) => resolvedModel({ capabilities: ['thinking'], ...fields })
const levels = { support_efforts: ['low', 'medium', 'high'] }

test('the default is the declared level, else the middle one, else on or off by capability', () => {
  assert.equal(defaultEffort(model({ ...levels, default_effort: 'high' })), 'high')
  assert.equal(defaultEffort(model({ ...levels, default_effort: 'unknown' })), 'medium')
  assert.equal(defaultEffort(model({ support_efforts: ['low', 'medium', 'high', 'max'] })), 'high', 'the higher of two')
  assert.equal(defaultEffort(model({})), 'on')
  assert.equal(defaultEffort(model({ capabilities: [] })), 'off')
})

test('the environment wins over the request, the request over the configuration, that over the model', () => {
  const chatty = model(levels)

  assert.equal(chooseEffort(chatty, { effort: 'low' }, 'high', 'max'), 'max')
  assert.equal(chooseEffort(chatty, { effort: 'low' }, 'high'), 'high')
  assert.equal(chooseEffort(chatty, { effort: 'low' }), 'low')
  assert.equal(chooseEffort(chatty, { enabled: false, effort: 'low' }), 'off')
  assert.equal(chooseEffort(chatty, {}), 'medium')
})

test('a model that is just to think does so at its default level, if it has levels', () => {
  assert.equal(chooseEffort(model(levels), {}, 'on'), 'medium')
  assert.equal(chooseEffort(model({ ...levels, default_effort: 'low', protocol: 'svc' }), { effort: 'on' }), 'low')
  assert.equal(chooseEffort(model({ ...levels, capabilities: [] }), {}, undefined, 'on'), 'medium')
  for (const capabilities of [['thinking'], []]) assert.equal(chooseEffort(model({ capabilities }), {}, 'on'), 'on')
})

test('a model that always thinks is never switched off', () => {
  const always = { capabilities: ['always_thinking'], temperature: 0.5 }
  assert.equal(chooseEffort(model(always), {}, 'off'), 'on')
  // Providers refuse sampling while a model thinks.
  assert.deepEqual(samplingOf(model(always), true), {})
  assert.deepEqual(samplingOf(model({ temperature: 0.5 }), true), { temperature: 0.5 })
  assert.deepEqual(samplingOf(model({ temperature: 0.5 }), false), {})
})

test('only svc models refuse levels they do not list; when it must go on they use their default', () => {
  const strict = model({ ...levels, protocol: 'svc' })

  assert.equal(chooseEffort(strict, {}, 'max'), 'medium')
  assert.equal(chooseEffort(model(levels), {}, 'max'), 'max')
  assert.throws(() => checkEffort(strict, 'max'), { spec: ValidationFailed })
  assert.doesNotThrow(() => checkEffort(strict, 'off'))
  assert.doesNotThrow(() => checkEffort(model(levels), 'max'))
})
