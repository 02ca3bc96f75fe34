import { relative, resolve } from 'node:path'
import type { PropertyReport } from '../../testing/properties/check-properties.js'
import type { Property } from '../../testing/properties/property.js'
import type { PropertyStory } from '../../testing/properties/play-story.js'
import type { PathStep } from '../../testing/machine-path.js'
import { stripControls } from '../../core/format/format-words.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { loadModule } from '../load-module.js'
import { findSpaceExports, loadMachineSpace, type MachineSpace, toSpecifier } from '../machine-space.js'
import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'
import type { TestRunner } from '../../testing/generate-tests.js'
import { parseRunner, runnerOption } from './common-options.js'
import { writeGenerated } from '../write-generated.js'

const options = {
  emit: { value: 'DIR', about: 'write the stories that break a property as a test file into this folder' },
  runner: runnerOption,
  json: { about: 'print the reports as one line of JSON' },
  limit: { value: 'N', about: 'stop at this number of distinct states (default: 20000)' },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export const propertiesCommand: Command = {
  name: 'properties',
  about: 'Checks what must be so in every run of a state machine, and shows the shortest run that breaks it.',
  positional: 'MACHINE PROPERTIES',
  options,
  notes: [
    'MACHINE and PROPERTIES are .js, .mjs or .ts files. The default export of MACHINE is an XState v5 machine. PROPERTIES exports\n' +
      `properties: { 'what must be so': leadsTo('asking', isFinal, { fair: ['GRANT'] }), … }, made by always, never, leadsTo, until,\n` +
      "canReach and decreases of 'statewright/testing'.\n" +
      'As for paths, either may export inputs, alphabet and serializeState; those of PROPERTIES win.',
    'Exit codes: 0 every property holds, 1 one is broken, or the limit came first, 2 bad usage or modules.',
    'Examples:\n' +
      '  statewright properties request.machine.ts request.properties.ts\n' +
      '  statewright properties request.machine.ts request.properties.ts --emit test/stories',
  ],
  execute: async (args, io) => {
    const { text, values, positionals } = parseOptions(args, options)
    const [machinePath, path] = expectTwoModules(positionals)
    const runner = parseRunner(text('runner'))
    const limit = parseWholeNumber('--limit', text('limit'), 1)
    const space = await loadMachineSpace(machinePath, io.cwd)
    const { properties, ...own } = await loadProperties(path, io.cwd)
    if (space.note !== undefined && own.alphabet === undefined)
      io.stderr.write(`statewright: ${space.note}\n`)
    const { checkProperties } = await import('../../testing/index.js')
    const reports = checkProperties(space.machine, properties, {
      ...space.options,
      ...own,
      ...(limit !== undefined && { limit }),
    })
    io.stdout.write(values.has('json') ? `${JSON.stringify(toJson(reports))}\n` : formatReports(reports))
    const stories = Object.values(reports).flatMap(({ counterexample }) => counterexample ?? [])
    const folder = text('emit')
    if (folder !== undefined && stories.length > 0)
      await emitTests(stories, { machinePath, path, space, runner }, folder, io)
    const isSure = Object.values(reports).every(({ holds }) => holds === true)
    return isSure ? exitCodes.completed : exitCodes.error
  },
}

function expectTwoModules(positionals: readonly string[]): [string, string] {
  const [first, second, ...more] = positionals
  if (first === undefined || second === undefined)
    throw badUsageError('Name two modules: statewright properties MACHINE PROPERTIES.', 'MODULE')
  if (more.length === 0) return [first, second]
  throw badUsageError(`Two modules at a time: '${more.join("', '")}' is too much.`, 'MODULE')
}

/** The export `properties` of a module, and what it says of the machine's events. */
async function loadProperties(path: string, cwd: string) {
  const refuse = (message: string, cause?: unknown): CliError =>
    new CliError('bad_properties', message, 'PROPERTIES', { cause })
  const module = await loadModule(path, cwd, refuse)
  const { properties } = module
  if (typeof properties !== 'object' || properties === null) {
    throw refuse(
      `'${path}' exports no properties. It needs: export const properties = { 'what must be so': always(…) }.`,
    )
  }
  return { ...findSpaceExports(module), properties: properties as Record<string, Property> }
}

function formatReports(reports: Record<string, PropertyReport>): string {
  const all = Object.values(reports)
  const lines = all.map(({ message, holds, begun }) => {
    const mark = { true: '✓', false: '✗', null: '?' }[String(holds) as 'true' | 'false' | 'null']
    return `${mark} ${stripControls(message)}${begun === 0 && holds !== false ? '; it never began' : ''}`
  })
  const count = (holds: boolean | null): number => all.filter((report) => report.holds === holds).length
  const unsure = count(null)
  const total = `${all.length} properties: ${count(true)} hold, ${count(false)} broken`
  return `${lines.join('\n')}\n${total}${unsure > 0 ? `, ${unsure} not known` : ''}\n`
}

/** Without snapshots: their contexts may be large. */
function toJson(reports: Record<string, PropertyReport>): unknown {
  const toSteps = (steps: readonly PathStep[]): unknown =>
    steps.map(({ event, label, state: { value, status }, transitions }) => ({
      event,
      label,
      state: { value, status },
      transitions,
    }))
  return Object.fromEntries(
    Object.entries(reports).map(([name, { counterexample, ...report }]) => {
      const { reason, path, loop } = counterexample ?? {}
      const story = path && {
        reason,
        input: path.input,
        steps: toSteps(path.steps),
        loop: loop && toSteps(loop),
      }
      return [name, { ...report, counterexample: story ?? null }]
    }),
  )
}

const generatedNote = 'Generated by `statewright properties`: runs that broke a property.'

async function emitTests(
  stories: readonly PropertyStory[],
  {
    machinePath,
    path,
    space,
    runner,
  }: { machinePath: string; path: string; space: MachineSpace; runner: TestRunner },
  dir: string,
  io: CliIO,
): Promise<void> {
  const { generateStoryTests } = await import('../../testing/index.js')
  const folder = resolve(io.cwd, dir)
  const specify = (module: string): string => toSpecifier(folder, resolve(io.cwd, module))
  const text = generateStoryTests(stories, {
    title: `what must be so in ${space.machine.id}`,
    header: generatedNote,
    runner,
    imports: [
      `import { checkStory } from 'statewright/testing'`,
      space.importFor(folder),
      `import * as ofMachine from ${specify(machinePath)}`,
      `import * as ofProperties from ${specify(path)}`,
    ],
    properties: 'ofProperties.properties',
    // A story has its own events.
    options: '{ ...ofMachine, ...ofProperties, alphabet: [] }',
  })
  const name = `${space.machine.id.replace(/[^\w-]+/g, '-') || 'machine'}.properties.test.js`
  const file = await writeGenerated(folder, name, text, `// ${generatedNote}`)
  io.stderr.write(
    `Wrote ${stories.length} ${stories.length === 1 ? 'test' : 'tests'} to ${relative(io.cwd, file)}\n`,
  )
}
