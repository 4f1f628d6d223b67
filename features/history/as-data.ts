/**
 * Tags by which the program speaks to the model (`<system>`, `<system-reminder>`): in texts of others they are shown as `&lt;system>`, and what
 * the model writes for the world is read back the same way, so that a file keeps its tags when the model copies what it saw.
 */

/**
 * What follows the `<` of such a tag. No more than that is touched: code has `<system_error>`, `List<System.String>` and `a < system && b > c`.
 * Attributes are bounded, so that a text costs time by its length.
 */
const tag = String.raw`(?=\s*(?:\/\s*)?(?:system-reminder(?:[\s/][^>]{0,200})?|system(?:\s*\/?|\s+[\w:.-]{1,100}\s*=[^>]{0,200}))>)`
const shownTag = new RegExp(`<${tag}`, 'gi')
/** The form itself, where a text has it: without a mark of its own it would come back as a tag. */
const shownForm = new RegExp(`&((?:amp;)*lt;${tag})`, 'gi')
const writtenForm = new RegExp(`&(?:lt;|amp;((?:amp;)*lt;))${tag}`, 'gi')

/** A text of others as the model reads it. */
export const asData = (text: string): string => text.replace(shownForm, '&amp;$1').replace(shownTag, '&lt;')

/** What the model wrote, as it is meant: `asData` undone. */
export const fromModel = (text: string): string =>
  text.replace(writtenForm, (_, marked?: string) => (marked === undefined ? '<' : `&${marked}`))

/** The arguments that a model wrote for a call. Throws when they are no JSON. */
export function argumentsFromModel(json: string): unknown {
  // Letters are never written in another way, as `&` may be.
  if (!json.includes('lt;')) return JSON.parse(json)
  return JSON.parse(json, (_key, value: unknown) => (typeof value === 'string' ? fromModel(value) : value))
}
