import * as z from 'zod'
import { evaluateExpression } from '../../../src/cli/arithmetic.js'
import { defineTool, ToolError } from '../../../src/index.js'
import { notes } from './notes.ts'

/** The tools of the playground's agent: the rehearsal's notes, arithmetic, and a payment that needs approval. */
export const tools = [
  defineTool({
    name: 'list_files',
    description: 'Lists the notes.',
    input: z.object({}),
    readOnly: true,
    execute: () => [...notes.keys()].join('\n'),
  }),
  defineTool({
    name: 'read_file',
    description: 'Reads a note.',
    input: z.object({ path: z.string() }),
    readOnly: true,
    execute: ({ path }) => {
      const text = notes.get(path)
      if (text === undefined)
        throw new ToolError(
          'failed',
          `The file '${path}' does not exist. The files are ${[...notes.keys()].join(', ')}.`,
        )
      return text
    },
  }),
  defineTool({
    name: 'calculate',
    description: 'Evaluates an arithmetic expression, such as (12.50 + 3) * 2.',
    input: z.object({ expression: z.string() }),
    readOnly: true,
    execute: ({ expression }) => evaluateExpression(expression),
  }),
  defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ invoice: z.string(), amount: z.number() }),
    needsApproval: true,
    execute: ({ invoice, amount }) => `Paid ${amount} EUR for ${invoice}.`,
  }),
]
