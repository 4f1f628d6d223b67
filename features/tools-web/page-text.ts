/** Bytes of a page as text, and the words of it without any markup; in one pass, whatever the page looks like. */

/** By its byte order mark, else as the server says, else as the page says, else UTF-8. An unknown name counts as UTF-8. */
export function decodePage(bytes: Uint8Array, charset: string | undefined): string {
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 2048))
  const mark = head.startsWith('\xff\xfe')
    ? 'utf-16le'
    : head.startsWith('\xfe\xff')
      ? 'utf-16be'
      : head.startsWith('\xef\xbb\xbf')
        ? 'utf-8'
        : undefined
  const declared = /<meta[^>]{0,200}charset=["']?([\w-]{1,40})/i.exec(head)?.[1]
  try {
    return new TextDecoder(mark ?? charset ?? declared ?? 'utf-8').decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

const silent = ['script', 'style', 'noscript', 'template', 'svg', 'title']
const breaks = /^\/?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section|article|header|footer|pre|blockquote|td|th|dt|dd)\b/i
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

export function plainText(html: string): { readonly title: string; readonly text: string } {
  const words: string[] = []
  const lower = html.replaceAll('İ', 'i').toLowerCase() // the only letter that gets longer: what is found here is cut out there
  for (let at = 0; at < html.length; ) {
    const open = html.indexOf('<', at)
    words.push(html.slice(at, open < 0 ? html.length : open))
    if (open < 0) break
    const comment = html.startsWith('<!--', open)
    const end = comment ? html.indexOf('-->', open) : html.indexOf('>', open)
    if (end < 0) break
    const tag = html.slice(open + 1, Math.min(end, open + 20))
    at = end + (comment ? 3 : 1)
    const name = /^[a-z]+/i.exec(tag)?.[0].toLowerCase() ?? ''
    if (!comment && silent.includes(name)) {
      const close = lower.indexOf(`</${name}`, at)
      at = close < 0 ? html.length : close
    } else if (breaks.test(tag)) words.push('\n')
  }
  const text = decoded(words.join(''))
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim()
  const start = lower.indexOf('<title')
  const from = start < 0 ? -1 : html.indexOf('>', start)
  const to = from < 0 ? -1 : lower.indexOf('</title', from)
  return {
    title:
      to < 0
        ? ''
        : decoded(html.slice(from + 1, to))
            .replace(/\s+/g, ' ')
            .trim(),
    text
  }
}

function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,5}));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return entities[String(name).toLowerCase()] ?? all
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : all
  })
}
