/**
 * Tools for the CLI. Copy this file, and run:
 *
 *   statewright run --tools ./tools.mjs "How many days are left until the end of the year?"
 */
import { writeFile } from 'node:fs/promises'
import { defineTool, ToolError } from 'statewright'
import { z } from 'zod'

const today = defineTool({
  name: 'today',
  description: "Returns today's date as YYYY-MM-DD.",
  input: z.object({}),
  readOnly: true,
  execute: () => new Date().toISOString().slice(0, 10),
})

const daysBetween = defineTool({
  name: 'days_between',
  description: 'Returns the number of days from one date to another, negative if the second date is earlier.',
  input: z.object({ from: z.iso.date(), to: z.iso.date() }),
  readOnly: true,
  execute: ({ from, to }) => Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000),
})

const saveNote = defineTool({
  name: 'save_note',
  description: 'Saves text as a new file in the current folder.',
  input: z.object({ name: z.string().describe('A file name such as note.txt'), text: z.string() }),
  // The tool has a side effect, so a person must approve the call.
  needsApproval: true,
  execute: async ({ name, text }, { signal }) => {
    // The check is in the tool, so that no prompt can bypass it.
    if (!/^[\w-]+\.txt$/.test(name))
      throw new ToolError('policy_denied', 'The name of a note must look like note.txt.')
    await writeFile(name, text, { flag: 'wx', signal })
    return `Saved ${name}.`
  },
})

export default [today, daysBetween, saveNote]
