import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import * as z from 'zod'
import { readProperty } from '../core/base/json.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import { defineTool } from '../core/tools/define-tool.js'
import { largestExpense, type RecordedRequest, type Scenario, type Turn } from '../rehearsal/index.js'
import { ToolError } from '../core/tools/tool-error.js'
import { evaluateExpression } from './arithmetic.js'
import { packageRoot } from '../studio/studio-page.js'

/** The run that `statewright run --rehearsal` performs. It calls `largestExpense`, and makes a payment that needs approval. */

export const demoPrompt = 'What was the largest expense of the quarter? Pay its open invoice.'

const knownPrompt = /expens|cost|spen[dt]|invoice|quarter|notes/i

const declined =
  'I am a script, not a model: I only know the question about the largest expense. ' +
  'Run the command without a prompt to see it, or ask a real model.'

/** Low enough for the warning about the reserve to appear. */
export const demoSettings = { limits: { tokenBudget: 6_000 }, guardrails: { reserveTokens: 2_500 } }

export function createDemoTools(): readonly ToolEntry[] {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice in EUR.',
    input: z.object({ invoice: z.string(), amount: z.number() }),
    needsApproval: true,
    execute: ({ invoice, amount }) =>
      `Paid ${amount} EUR for ${invoice}. This is a demo: no money was moved.`,
  })
  return [...createNoteTools(), pay]
}

export function createDemoScenario(): Scenario {
  const [list = {}, rateLimit = {}, read = {}, calculate = {}, answer = {}, ending = {}] =
    largestExpense.turns as readonly Turn[]
  const pay: Turn = {
    text: 'The offsite is the largest. Its catering invoice is still open, so I will pay that.',
    toolCalls: [{ name: 'pay', arguments: { invoice: '2025-034', amount: 814.5 } }],
    usage: { input: 1014, output: 58, cached: 768 },
    delayMs: 120,
    chunkDelayMs: 15,
  }
  let isLimited = false
  // Continues after the answers in the request, so that a fork in the studio plays on from where it starts.
  const playNext = (request: RecordedRequest): Turn => {
    const { messages } = request.body
    const asked = messages.findLastIndex(({ role, content }) => role === 'user' && isKnown(content))
    const count = messages.slice(asked).filter(({ role }) => role === 'assistant').length
    if (count === 1 && !isLimited) {
      isLimited = true
      return rateLimit
    }
    const paid = { ...answer, text: `${describePayment(request)}\n\n${answer.text ?? ''}` }
    const next = [list, read, calculate, pay, paid, ending][count]
    return asked === -1 || next === undefined ? { text: declined } : next
  }
  return { name: 'largest-expense', turns: [playNext], onExhausted: 'repeatLast' }
}

const isKnown = (content: unknown): boolean => knownPrompt.test(JSON.stringify(content) ?? '')

function describePayment({ body }: RecordedRequest): string {
  const isPaid = JSON.stringify(body.messages.at(-1)?.content ?? '').includes('Paid')
  return isPaid ? 'Invoice 2025-034 is paid.' : 'I have not paid invoice 2025-034.'
}

const maxFileBytes = 100_000

/** `root` is the only folder that the tools read. */
export function createNoteTools(root = join(packageRoot, 'examples', 'notes')) {
  return [
    defineTool({
      name: 'list_files',
      description: 'Lists the files in the notes folder.',
      input: z.object({}),
      readOnly: true,
      execute: async () => (await listNames(root)).join('\n'),
    }),
    defineTool({
      name: 'read_file',
      description: 'Reads a text file in the notes folder.',
      input: z.object({ path: z.string().describe('Relative to the notes folder, such as march.txt') }),
      readOnly: true,
      execute: ({ path }) => readConfined(root, path),
    }),
    defineTool({
      name: 'calculate',
      description: 'Evaluates an arithmetic expression, such as (12.50 + 3) * 2.',
      input: z.object({ expression: z.string() }),
      readOnly: true,
      execute: ({ expression }) => evaluateExpression(expression),
    }),
  ]
}

/** Resolves links first, so that none leads out of the root. */
async function readConfined(root: string, path: string): Promise<string> {
  const base = await realpath(root)
  const message = `'${path}' is outside the notes folder. Use a path inside it.`
  const refusal = new ToolError('policy_denied', message)
  const named = resolve(base, path)
  if (!isInside(base, named)) throw refusal
  let file: string
  try {
    file = await realpath(named)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(String(readProperty(error, 'code')))) throw error
    const names = await listNames(root)
    throw new ToolError('failed', `There is no file '${path}'. The files are: ${names.join(', ')}.`)
  }
  if (!isInside(base, file)) throw refusal
  const info = await stat(file)
  if (!info.isFile()) throw new ToolError('failed', `'${path}' is not a file.`)
  if (info.size > maxFileBytes)
    throw new ToolError('failed', `'${path}' is larger than ${maxFileBytes} bytes.`)
  return readFile(file, 'utf8')
}

const isInside = (base: string, file: string): boolean => file.startsWith(base + sep)

async function listNames(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map(({ name }) => name).sort()
}
