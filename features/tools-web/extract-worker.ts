/** Worker: the article of a page as Markdown. Runs in its own thread, because deep documents take seconds and can overflow the stack. */
import { parentPort, workerData } from 'node:worker_threads'
import { decodePage, plainText } from './page-text.ts'

export interface ExtractTask {
  readonly bytes: Uint8Array
  readonly charset: string | undefined
  readonly url: string
}

/** `plain` comes first: it stands in when the article takes too long. */
export interface Extracted {
  readonly kind: 'plain' | 'article'
  readonly title: string
  readonly text: string
}

async function article(html: string): Promise<Extracted | undefined> {
  const [{ parseHTML }, { Readability }, { default: Turndown }] = await Promise.all([
    import('linkedom'),
    import('@mozilla/readability'),
    import('turndown')
  ])
  const { document } = parseHTML(html)
  const title = document.title?.trim() ?? ''
  for (const element of document.querySelectorAll('script, style, noscript, template, iframe, svg')) element.remove()
  // Readability takes the document apart; what it does not take for an article is read whole.
  const found = new Readability(document.cloneNode(true) as never).parse()
  const enough = (found?.textContent ?? '').trim().length >= 200
  const root = enough ? parseHTML(`<html><body>${found?.content ?? ''}</body></html>`).document.body : document.body
  const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' })
  const text = turndown.turndown(root as never).trim()
  return text === '' ? undefined : { kind: 'article', title: (enough && found?.title) || title, text }
}

const { bytes, charset } = workerData as ExtractTask
const html = decodePage(bytes, charset)
const plain: Extracted = { kind: 'plain', ...plainText(html) }
parentPort?.postMessage(plain)
const answer = await article(html).catch(() => undefined) // too deep, or no page at all: the plain text stands in
parentPort?.postMessage(answer ?? plain)
