/**
 * Tools for the command line. Copy this file, and run:
 *
 *   statewright run --tools ./tools.mjs "How many days are left until the end of the year?"
 */
import { writeFile } from 'node:fs/promises'
import { defineTool, ToolError } from 'statewright'
import { z } from 'zod'

const today = defineTool({
  name: 'today',
  description: 'The date of today, as YYYY-MM-DD.',
  input: z.object({}),
  readOnly: true,
  execute: () => new Date().toISOString().slice(0, 10),
})

const daysBetween = defineTool({
  name: 'days_between',
  description: 'Whole days from one date to another; negative when the second is earlier.',
  input: z.object({ from: z.iso.date(), to: z.iso.date() }),
  readOnly: true,
  execute: ({ from, to }) => Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000),
})

const saveNote = defineTool({
  name: 'save_note',
  description: 'Saves a text as a new file in the present folder.',
  input: z.object({ name: z.string().describe('A file name such as note.txt'), text: z.string() }),
  // The tool changes something, so a person is asked first.
  needsApproval: true,
  execute: async ({ name, text }, { signal }) => {
    // The tool itself refuses what the model must not do: no prompt can change that.
    if (!/^[\w-]+\.txt$/.test(name)) throw new ToolError('policy_denied', 'A note is named like note.txt.')
    await writeFile(name, text, { flag: 'wx', signal })
    return `Saved ${name}.`
  },
})

export default [today, daysBetween, saveNote]
