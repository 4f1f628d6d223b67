/** Text of models and files for a terminal: without what moves its cursor, changes its colours or writes to its clipboard. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is meant
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Line breaks and tabs stay. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(controls, '')
}
