import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertBind, classifyBind } from '../../../features/cli/bind.ts'

test('bind addresses fall into three classes', () => {
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]']) assert.equal(classifyBind(host), 'loopback', host)
  for (const host of ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.1.1', 'fe80::1', 'fe80::1%eth0']) {
    assert.equal(classifyBind(host), 'lan', host)
  }
  for (const host of ['0.0.0.0', '::', '', '172.32.0.1', '8.8.8.8', 'my.host', '2001:db8::1'])
    assert.equal(classifyBind(host), 'public', host)
})

test('an exposed bind needs the insecure option and warns without a password', () => {
  assert.deepEqual(assertBind({ host: '127.0.0.1' }), [])
  assert.throws(() => assertBind({ host: '0.0.0.0' }), /--insecure-no-tls/)
  assert.equal(assertBind({ host: '0.0.0.0', insecureNoTls: true }).length, 2)
  assert.equal(assertBind({ host: '192.168.1.5', insecureNoTls: true, password: 'x' }).length, 1)
})
