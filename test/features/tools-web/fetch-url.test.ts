import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guardOutbound, OutboundRefused } from '../../../features/llm/index.ts'
import { addressRule, PrivateAddress, publicLookup } from '../../../features/tools-web/addresses.ts'
import { decodePage, plainText } from '../../../features/tools-web/page-text.ts'
import { callTools, fetchAll, site } from './scene.ts'

const words = 'Every sentence of this article has words enough to be taken for one by whoever looks for it. '.repeat(8)
const article = `<!doctype html><html><head><title>About &amp; around</title><script>var hidden = 1</script></head><body>
<nav><a href="/">Home</a></nav><article><h1>Heading</h1><p>${words}</p><p>A <a href="/next">link</a> and <b>bold</b> words. ${words}</p></article>
<footer>Imprint</footer></body></html>`

test('a page becomes its article as Markdown, texts pass as they are', async t => {
  const url = await site(t, (req, res) => {
    const send = (type: string, body: string | Buffer) => res.writeHead(200, { 'content-type': type }).end(body)
    if (req.url === '/page') send('text/html; charset=utf-8', article)
    else if (req.url === '/plain') send('text/plain', '# as <b>it</b> is')
    else if (req.url === '/latin') send('text/plain; charset=iso-8859-1', Buffer.from('gr\xfc\xdfe', 'latin1'))
    else if (req.url === '/json') send('application/json', '{"a": 1}')
    else if (req.url === '/tiny') send('text/html', '<p>few</p><p>words &lt;here&gt;</p>')
    else if (req.url === '/image') send('image/png', '...')
    else if (req.url === '/empty') send('text/html', '<html></html>')
    else res.writeHead(404).end()
  })
  const paths = ['page', 'plain', 'latin', 'json', 'tiny', 'image', 'empty', 'none']
  const [page, plain, latin, json, tiny, image, empty, none] = await fetchAll(
    t,
    paths.map(path => `${url}/${path}#part`)
  )
  assert.match(page?.text ?? '', /^Title: About & around\nURL: http:\S+\/page\n\n/)
  assert.match(page?.text ?? '', /A \[link\]\(\S*\/next\) and \*\*bold\*\* words/)
  assert.doesNotMatch(page?.text ?? '', /hidden|Imprint/)
  assert.equal(plain?.text, '# as <b>it</b> is')
  assert.equal(latin?.text, 'grüße')
  assert.equal(json?.text, '{"a": 1}')
  assert.match(tiny?.text ?? '', /few\s+words \\?<here\\?>/)
  assert.match(image?.text ?? '', /is image\/png, which cannot be read as text/)
  assert.match(empty?.text ?? '', /has no text/)
  assert.deepEqual([image?.failed, empty?.failed, none?.failed], [true, true, true])
  assert.match(none?.text ?? '', /answered HTTP 404/)
})

test('redirects are followed, each one judged like the first address', async t => {
  const asked: string[] = []
  const url = await site(t, (req, res) => {
    asked.push(req.url ?? '')
    const [, left = '', to = ''] = /^\/(\d+|to)\/?(.*)$/.exec(req.url ?? '') ?? []
    if (left === 'to') res.writeHead(302, { location: decodeURIComponent(to) }).end()
    else if (left !== '0') res.writeHead(301, { location: `/${Number(left) - 1}` }).end()
    else res.writeHead(200, { 'content-type': 'text/plain' }).end('here')
  })
  const port = new URL(url).port
  const bad = [
    `http://127.0.0.2:${port}/0`,
    `http://localhost:${port}/0`,
    `http://127.0.0.2..:${port}/0`,
    `http://[::1]:${port}/0`,
    'http://10.0.0.1/',
    'file:///etc/passwd',
    'http://u:p@127.0.0.1/'
  ]
  const [ten, eleven, ...refused] = await fetchAll(t, [
    `${url}/10`,
    `${url}/11`,
    ...bad.map(each => `${url}/to/${encodeURIComponent(each)}`)
  ])
  assert.match(ten?.text ?? '', /^here\n?The page was found at http:\S+\/0$/)
  assert.match(eleven?.text ?? '', /redirects more than 10 times/)
  for (const [at, result] of refused.entries()) assert.match(result.text, /private network|Only http and https|user name/, bad[at])
  assert.equal(asked.filter(path => path === '/0').length, 1)
})

test('this machine and private networks are refused in every spelling', async t => {
  const urls = [
    'http://127.0.0.2/',
    'http://127.0.0.2../',
    'http://2130706434/',
    'http://0x7f.2/',
    'http://0/',
    'http://localhost/',
    'http://a.localhost./',
    'http://localhost../',
    'http://[::]/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.2]/',
    'http://[::127.0.0.2]/',
    'http://[64:ff9b::7f00:2]/',
    'http://[2002:7f00:2::]/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://10.1.2.3/',
    'http://100.64.0.1/',
    'http://169.254.169.254/latest/meta-data',
    'http://172.31.255.255/',
    'http://192.168.0.1/',
    'http://224.0.0.1/',
    'http://255.255.255.255/'
  ]
  const results = await fetchAll(t, urls)
  for (const [at, { text, failed }] of results.entries()) assert.ok(failed && /private network/.test(text), `${urls[at]}: ${text}`)
  for (const [odd] of [['ftp://example.com/'], ['nonsense'], ['javascript:1']])
    assert.equal((await fetchAll(t, [String(odd)]))[0]?.failed, true)
})

test('a name is looked up once and its addresses are the ones that are called; one private address refuses it', async () => {
  const rule = addressRule([])
  const look = (found: { address: string; family: number }[], all: boolean) =>
    new Promise<unknown>(resolve => {
      const find = publicLookup(rule, ((_name: string, _options: object, answer: (error: null, found: object) => void) =>
        answer(null, found)) as never)
      find('example.com', { all }, (error, address) => resolve(error ?? address))
    })
  const open = { address: '93.184.216.34', family: 4 }
  assert.deepEqual(await look([open], true), [open])
  assert.equal(await look([open], false), '93.184.216.34')
  assert.ok((await look([open, { address: '192.168.1.1', family: 4 }], true)) instanceof PrivateAddress)
  assert.ok((await look([{ address: '::ffff:10.0.0.1', family: 6 }], false)) instanceof PrivateAddress)
  assert.equal(addressRule(['10.1.0.0/16'])('10.1.2.3'), true)
  assert.equal(addressRule(['10.1.0.0/16'])('10.2.2.3'), false)
  assert.equal(rule('2606:2800:220:1::1'), true)
})

test('what is too large, too slow or breaks off is refused', async t => {
  const url = await site(t, (req, res) => {
    res.writeHead(200, { 'content-type': 'text/plain', ...(req.url === '/cut' ? { 'content-length': '100' } : {}) })
    if (req.url === '/large') {
      const more = () => {
        while (!res.destroyed && res.write('x'.repeat(1_000_000)));
        if (!res.destroyed) res.once('drain', more)
      }
      more()
    } else if (req.url === '/cut') res.write('half', () => res.destroy())
    else if (req.url === '/full') res.end('y'.repeat(10 * 1024 * 1024))
    else res.write('slow')
  })
  const [large, cut, full] = await fetchAll(t, [`${url}/large`, `${url}/cut`, `${url}/full`])
  const [slow] = await fetchAll(t, [`${url}/slow`], { options: { timeout_ms: 300 } })
  assert.match(large?.text ?? '', /larger than 10 MiB/)
  assert.match(cut?.text ?? '', /broke off/)
  assert.match(full?.text ?? '', /too long to show: 10485760 characters/)
  assert.match(slow?.text ?? '', /did not answer within 0\.3 s/)
})

test('a page that no parser gets through in time becomes plain text, and the loop goes on meanwhile', async t => {
  const deep = `<title>Deep</title>${'<div>'.repeat(60_000)}<p>at the ground</p>`
  const url = await site(t, (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end(deep))
  let longest = 0
  let last = performance.now()
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 1)
  const [result] = await fetchAll(t, [`${url}/`], { options: { extract_ms: 700 } })
  clearInterval(timer)
  assert.match(result?.text ?? '', /^Title: Deep\nURL: \S+\n\nat the ground/)
  assert.ok(longest < 500, `${longest} ms`)
})

test('the fetch service is asked first; when it fails the page itself is read; offline nobody is', async t => {
  let status = 200
  const asked: unknown[] = []
  const service = await site(t, (req, res, body) => {
    asked.push([req.method, req.url, req.headers.authorization, req.headers['x-more'], JSON.parse(body)])
    res.writeHead(status, { 'content-type': 'text/markdown' }).end('# from the service')
  })
  const page = await site(t, (_req, res) => res.writeHead(200, { 'content-type': 'text/plain' }).end('from the page'))
  const services = { svc_fetch: { base_url: `${service}/v1/fetch`, api_key: 'k', custom_headers: { 'X-More': 'm' } } }
  assert.equal((await fetchAll(t, [`${page}/x`], { services }))[0]?.text, '# from the service')
  assert.deepEqual(asked, [['POST', '/v1/fetch', 'Bearer k', 'm', { url: `${page}/x` }]])
  status = 500
  assert.equal((await fetchAll(t, [`${page}/x`], { services }))[0]?.text, 'from the page')
  const undo = guardOutbound(url => {
    throw new OutboundRefused(url, 'the server runs offline')
  })
  t.after(undo)
  const [offline] = await fetchAll(t, [`${page}/x`], { services })
  assert.match(offline?.text ?? '', /was not called: the server runs offline/)
  assert.equal(asked.length, 2)
})

test('the call shows what it reads', async t => {
  const url = await site(t, (_req, res) => res.end('x'))
  const { events, tools } = await callTools(t, [{ name: 'FetchURL', args: { url } }])
  const started = events.find(event => event.type === 'tool.call.started')?.payload as { display?: unknown }
  assert.deepEqual(started.display, { kind: 'url_fetch', url: `${url}/`, method: 'GET' })
  assert.deepEqual(tools, ['FetchURL'], 'without a service there is no WebSearch')
})

test('plain text is found in one pass, whatever the markup', () => {
  assert.deepEqual(
    plainText('<title> A\nB </title><style>x{}</style><p>one<br>two &#228;&#x1F600;&unknown;</p><!-- <p>no</p> --><script>never closed'),
    {
      title: 'A B',
      text: 'one\ntwo ä😀&unknown;'
    }
  )
  const turkish = { title: 'İİİİİİİİ', text: 'İÇİN\nsonra' }
  assert.deepEqual(plainText('<title>İİİİİİİİ</title><p>İÇİN<script>x()</script><p>sonra'), turkish)
  const before = performance.now()
  plainText('<script'.repeat(300_000))
  plainText('<!--'.repeat(300_000))
  plainText('<p>x</p>\n'.repeat(200_000))
  assert.ok(performance.now() - before < 3_000)
  assert.equal(decodePage(Buffer.from('<meta charset="windows-1251">\xcf\xf0', 'latin1'), undefined).slice(-2), 'Пр')
  assert.equal(decodePage(Buffer.from('\xff\xfea\0b\0', 'latin1'), 'utf-8'), 'ab')
  assert.equal(decodePage(Buffer.from('x'), 'no-such-charset'), 'x')
})
