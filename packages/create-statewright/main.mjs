#!/usr/bin/env node
// npm create statewright@latest [FOLDER] [-- --template NAME]: creates a project.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { createProject, findFolderFault } from './src/create-project.mjs'
import { UsageError, readOptions } from './src/options.mjs'
import { templates } from './src/templates.mjs'

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

const help = `Begins a project with Statewright: an agent loop as a statechart.

Usage: npm create statewright@latest [FOLDER] [-- --template NAME]

Templates:
${Object.entries(templates)
  .map(([name, { about }]) => `  ${name.padEnd(8)} ${about}`)
  .join('\n')}

Options:
  -t, --template NAME   the template, without a question
      --package SPEC    which Statewright the project installs (default: ^${version}); file:PATH takes a packed one
  -h, --help            show this help
  -V, --version         show the version

FOLDER is new or empty: nothing is overwritten. Without a terminal, give FOLDER and --template.`

/** Asks for missing arguments. Ctrl-C at a question exits the command without writing anything. */
async function askRest({ folder, template }) {
  const { cancel, group, intro, select, text } = await import('@clack/prompts')
  intro('Statewright')
  return group(
    {
      folder: () =>
        folder ??
        text({
          message: 'Which folder?',
          placeholder: 'my-agent',
          defaultValue: 'my-agent',
          validate: (folder) => findFolderFault(folder || 'my-agent') ?? undefined,
        }),
      template: () =>
        template ??
        select({
          message: 'Which template?',
          options: Object.entries(templates).map(([value, { about }]) => ({
            value,
            label: value,
            hint: about,
          })),
        }),
    },
    {
      onCancel: () => {
        cancel('Nothing was written.')
        process.exit(130)
      },
    },
  )
}

async function main() {
  const options = readOptions(process.argv.slice(2))
  if (options.help) return console.log(help)
  if (options.version) return console.log(version)
  const fault = options.folder === undefined ? null : findFolderFault(options.folder)
  if (fault) throw new UsageError(fault)
  const isComplete = options.folder !== undefined && options.template !== undefined
  if (!isComplete && !process.stdin.isTTY)
    throw new UsageError('There is no terminal. Pass FOLDER and --template NAME.')
  const { folder, template } = isComplete ? options : await askRest(options)
  const count = createProject({ folder, template, packageSpec: options.package ?? `^${version}` })
  const place = relative(process.cwd(), folder)
  const steps = [
    ...(place === '' ? [] : [`cd ${/^[\w./-]+$/.test(place) ? place : `'${place}'`}`]),
    'npm install',
    ...templates[template].steps,
  ]
  console.log(`${count} files are in ${place === '' ? 'this folder' : place}. It needs no key:\n`)
  for (const step of steps) console.log(`  ${step}`)
}

try {
  await main()
} catch (error) {
  // Errors of the file system name the path.
  const isFileError = error.syscall !== undefined
  if (!(error instanceof UsageError || isFileError)) throw error
  const problem = isFileError ? `${error.message}. Give another folder, or make it writable.` : error.message
  console.error(`create-statewright: ${problem}\nSee 'npm create statewright@latest -- --help'.`)
  process.exitCode = 2
}
