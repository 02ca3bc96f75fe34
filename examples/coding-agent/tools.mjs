/** The model's tools, restricted to the project folder. */
import { execFile } from 'node:child_process'
import { readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { defineTool, ToolError } from 'statewright'
import { z } from 'zod'

const file = z.string().describe('A path in the project, such as src/main.mjs')

export function projectTools(project) {
  /** The model writes the path, so neither `..` nor a link may leave the project. */
  async function contain(target) {
    const [root, found] = await Promise.all([realpath(project), realpath(path.resolve(project, target))])
    if (found.startsWith(root + path.sep)) return found
    throw new ToolError('policy_denied', `${target} is not in the project.`)
  }

  const plan = defineTool({
    name: 'plan',
    description: 'Shows the user your plan. Call it first, and again after each completed step.',
    input: z.object({ done: z.array(z.string()), next: z.array(z.string()) }),
    readOnly: true,
    execute: (steps, { progress }) => {
      progress(steps)
      return `Shown. ${steps.next.length} to go.`
    },
  })
  const listFiles = defineTool({
    name: 'list_files',
    description: 'Lists the paths of all files in the project.',
    input: z.object({}),
    readOnly: true,
    execute: async () => {
      const entries = await readdir(project, { recursive: true, withFileTypes: true })
      const files = entries.filter((entry) => entry.isFile())
      return files.map((entry) => path.relative(project, path.join(entry.parentPath, entry.name))).join('\n')
    },
  })
  const readText = defineTool({
    name: 'read_file',
    description: 'Reads a file.',
    input: z.object({ file }),
    readOnly: true,
    execute: async ({ file }) => readFile(await contain(file), 'utf8'),
  })
  const editFile = defineTool({
    name: 'edit_file',
    description: 'Replaces text that occurs exactly once in a file. A person must approve the change.',
    input: z.object({ file, old: z.string().min(1), new: z.string() }),
    needsApproval: true,
    execute: async ({ file, old, new: text }) => {
      const target = await contain(file)
      const parts = (await readFile(target, 'utf8')).split(old)
      if (parts.length !== 2)
        throw new ToolError('failed', `The old text occurs ${parts.length - 1} times in ${file}.`)
      await writeFile(target, parts.join(text))
      return `Changed ${file}.`
    },
  })
  const runTests = defineTool({
    name: 'run_tests',
    description: 'Runs the tests of the project, and returns their output.',
    input: z.object({}),
    idempotent: true,
    polling: true,
    timeoutMs: 60_000,
    execute: (_, { signal }) =>
      new Promise((resolve, reject) => {
        const options = { cwd: project, signal, env: { PATH: process.env.PATH } }
        execFile(process.execPath, ['--test', '--test-reporter=tap'], options, (error, stdout, stderr) => {
          // A failing test is a result. A program that cannot start is an error.
          if (typeof error?.code === 'string') reject(error)
          else resolve(`${countFailures(stdout)}\n\n${stdout}${stderr}`)
        })
      }),
  })
  return { look: [listFiles, readText], change: [plan, editFile, runTests] }
}

/** The user sees only the first line of a result. */
function countFailures(tap) {
  const [tests, failures] = ['tests', 'fail'].map(
    (name) => new RegExp(`^# ${name} (\\d+)`, 'm').exec(tap)?.[1] ?? '?',
  )
  return failures === '0' ? `All ${tests} tests pass.` : `${failures} of ${tests} tests fail.`
}
