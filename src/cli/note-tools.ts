import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import * as z from 'zod'
import { defineTool } from '../core/tools/define-tool.js'
import { ToolError } from '../core/tools/tool-error.js'
import { evaluateExpression } from './arithmetic.js'
import { getErrorCode } from './load.js'
import { packageRoot } from '../studio/studio-page.js'

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
    if (getErrorCode(error) !== 'ENOENT' && getErrorCode(error) !== 'ENOTDIR') throw error
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
