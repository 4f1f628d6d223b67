/** What the model reads about compaction: how it is asked for a summary, and how it meets one later. */

const request = `The context of this conversation is about to be replaced by a note that you write now. Afterwards you will see only what the user wrote and this note, so write it to yourself, in the first person, for the moment at which you go on with the work.

Say, as far as there is something to say:
1. What the user wants, in their own terms, and every rule and limit they set that is still in force.
2. What was done: files with their paths, commands with their exact form and what came of them, decisions and the reasons for them.
3. What was found out and is needed later: names, values, errors word for word, what did not work and need not be tried again.
4. What is open or uncertain, and what was claimed but not checked.
5. What comes next, in order, from the step that is under way now.

Leave out what anybody can read again where it stands. As long as the work demands and no longer. Write in the language of the conversation. Answer with the text of the note alone, and call no tool.`

/** The message that closes a conversation which is to be summarised. */
export function summaryRequest(instruction: string | undefined): string {
  if (instruction === undefined) return `<system-reminder>\n${request}\n</system-reminder>`
  return `<system-reminder>\n${request}\n\nThe user adds, for this note:\n${instruction}\n</system-reminder>`
}

const preamble =
  'The earlier part of this conversation was replaced by the note below, which you wrote yourself at that point. What the user wrote stands before it. Check what matters before you rely on it: files and processes may have changed since. Go on with the work as if there had been no break, and do not mention this note unless the user asks.'

/** The summary as the model meets it, with what packs add. */
export function summaryText(summary: string, notes: readonly string[]): string {
  return [preamble, summary, ...notes].join('\n\n')
}

/** Stands for messages that were too much to be summarised. */
export const leftOut =
  '<system-reminder>\nThe conversation before this point is left out, because it does not fit any more.\n</system-reminder>'
