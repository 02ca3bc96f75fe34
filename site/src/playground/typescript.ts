import type { Draft } from './examples.ts'
import type { Endpoint } from './play.ts'
import { notes } from './notes.ts'

/** Converts a draft to a Node program that contains the tools called by its script. */
export function writeProgram({ input, script, settings }: Draft, endpoint: Endpoint | null): string {
  const used = toolSources.filter(({ name }) => endpoint !== null || script.includes(`"${name}"`))
  const needs = (word: string): boolean => used.some(({ source }) => source.includes(word))
  const names = ['createAgent', ...(used.length > 0 ? ['defineTool'] : []), 'openaiChat']
  if (needs('ToolError')) names.push('ToolError')
  const options = JSON.stringify(JSON.parse(settings), null, 2).slice(1, -1).trim()
  return [
    ...(needs('runInNewContext') ? ["import { runInNewContext } from 'node:vm'"] : []),
    `import { ${names.join(', ')} } from 'statewright'`,
    ...(endpoint === null ? ["import { startRehearsal } from 'statewright/rehearsal'"] : []),
    ...(used.length > 0 ? ["import { z } from 'zod'"] : []),
    '',
    ...(needs('notes')
      ? [`const notes: Record<string, string> = ${toCode(Object.fromEntries(notes))}`, '']
      : []),
    `const tools = [${used.map(({ source }) => `\n${source}`).join('')}${used.length > 0 ? '\n' : ''}]`,
    '',
    ...writeModel(script, endpoint),
    `const agent = createAgent({ model, tools${options && `, ${options.replaceAll(/^ {2}/gm, '')}`} })`,
    `const run = agent.run(${toCode(input)})`,
    'let result = await run.result',
    "while (result.state === 'WAITING_FOR_INPUT') {",
    '  // A person decides here, with run.approve(call) or run.reject(call).',
    '  for (const call of result.pending) run.approve(call)',
    '  result = await run.result',
    '}',
    'console.log(result.state, result.output)',
    ...(endpoint === null ? ['await rehearsal.close()'] : []),
    '',
  ].join('\n')
}

function writeModel(script: string, endpoint: Endpoint | null): string[] {
  if (endpoint === null)
    return [
      `const rehearsal = await startRehearsal({ scenario: ${toCode(JSON.parse(script))} })`,
      "const model = openaiChat({ model: 'script', baseURL: rehearsal.url, apiKey: 'none' })",
    ]
  // The page's API key is never part of copied text.
  const { model, baseURL } = endpoint
  return [`const model = openaiChat({ model: ${toCode(model)}, baseURL: ${toCode(baseURL)} })`]
}

const toCode = (value: unknown): string => JSON.stringify(value, null, 2)

const toolSources = [
  {
    name: 'list_files',
    source: `  defineTool({
    name: 'list_files',
    description: 'Lists the notes.',
    input: z.object({}),
    readOnly: true,
    execute: () => Object.keys(notes).join('\\n'),
  }),`,
  },
  {
    name: 'read_file',
    source: `  defineTool({
    name: 'read_file',
    description: 'Reads a note.',
    input: z.object({ path: z.string() }),
    readOnly: true,
    execute: ({ path }) => {
      if (notes[path] === undefined) throw new ToolError('failed', \`The file '\${path}' does not exist.\`)
      return notes[path]
    },
  }),`,
  },
  {
    name: 'calculate',
    source: `  defineTool({
    name: 'calculate',
    description: 'Evaluates an arithmetic expression, such as (12.50 + 3) * 2.',
    input: z.object({ expression: z.string().regex(/^[\\d\\s.+*/()-]+$/) }),
    readOnly: true,
    execute: ({ expression }) => Number(runInNewContext(expression).toFixed(6)),
  }),`,
  },
  {
    name: 'pay',
    source: `  defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ invoice: z.string(), amount: z.number() }),
    needsApproval: true,
    execute: ({ invoice, amount }) => \`Paid \${amount} EUR for \${invoice}.\`,
  }),`,
  },
]
