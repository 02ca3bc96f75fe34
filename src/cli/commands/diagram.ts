import { quoteShellWord } from '../../core/format/shell-words.js'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { loadFile, describeReadError } from '../load-file.js'
import { loadMachine } from '../load-machine.js'
import { expectOneModule } from '../load-module.js'
import { type OptionSpecs, parseOptions } from '../parse-options.js'

const formats = ['svg', 'mermaid', 'json', 'stately', 'scxml'] as const
type Format = (typeof formats)[number]

const options = {
  format: { short: 'f', value: 'FORMAT', about: `one of ${formats.join(', ')} (default: svg)` },
  state: { value: 'STATE', about: 'draw one compound state only, such as WAITING_FOR_TOOL (svg)' },
  overview: { about: 'draw the top-level states only, or those inside --state (svg)' },
  coverage: {
    value: 'FILE',
    optional: true,
    about: 'show how often each transition is taken, by a Coverage as JSON, or explored now (svg)',
  },
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export const diagramCommand: Command = {
  name: 'diagram',
  about: 'Draws a state machine: the agent loop, or the one that a module exports.',
  positional: '[MODULE]',
  options,
  notes: [
    'MODULE is a .js, .mjs or .ts file with an XState v5 machine as its default export, or as its only machine.\n' +
      "stately is a file to paste into Stately's editors, json its config. svg needs (but for --overview): npm install @hpcc-js/wasm-graphviz",
    'Examples:\n' +
      '  statewright diagram --out agent.svg\n' +
      '  statewright diagram --state RUNNING.judging --out judging.svg\n' +
      '  statewright diagram ./machine.mjs --format mermaid',
  ],
  execute: async (args, io) => {
    const { values, positionals } = parseOptions(args, options)
    const module = expectOneModule(positionals)
    const format = parseFormat(toText(values.get('format')) ?? 'svg')
    const state = toText(values.get('state'))
    const isOverview = values.has('overview')
    for (const option of ['state', 'overview', 'coverage'] as const) {
      if (format !== 'svg' && values.has(option))
        throw badUsageError(`--${option} goes with --format svg only.`)
    }
    if (isOverview && values.has('coverage')) {
      throw badUsageError('--overview excludes --coverage: it shows no single transition.')
    }
    const machine = module === undefined ? agentMachine : await loadMachine(module, io.cwd)
    const coverage = values.get('coverage')
    const taken = coverage === undefined ? undefined : await loadCoverage(module, coverage, io)
    const drawn = isOverview
      ? await drawOverview(machine, state)
      : await drawChart(machine, format, { state, taken })
    await writeDrawing(drawn, toText(values.get('out')), io)
    return exitCodes.completed
  },
}

function toText(value: string | true | undefined): string | undefined {
  return value === true ? undefined : value
}

function parseFormat(name: string): Format {
  const format = formats.find((each) => each === name)
  if (format) return format
  throw badUsageError(`--format must be one of ${formats.join(', ')} (is '${name}').`, '--format')
}

/** Loaded on demand: other commands do not need it. */
async function drawChart(
  machine: AnyStateMachine,
  format: Format,
  { state, taken }: { state: string | undefined; taken: unknown },
): Promise<string> {
  const { toChart, readTransitionCounts, toMachineJson, toMermaid, toScxml, toStately, toSvg } = await import(
    '../../diagram/index.js'
  )
  if (format === 'json') return toMachineJson(machine)
  if (format === 'stately') return toStately(machine)
  const chart = toChart(machine)
  if (format === 'mermaid') return toMermaid(chart)
  if (format === 'scxml') return toScxml(chart)
  return toSvg(chart, { state, counts: taken === undefined ? undefined : readTransitionCounts(taken, chart) })
}

async function drawOverview(machine: AnyStateMachine, state: string | undefined): Promise<string> {
  const { toChart, toOverviewSvg } = await import('../../diagram/index.js')
  return toOverviewSvg(toChart(machine), undefined, state)
}

/** A `Coverage`, from its file or from an exploration. */
async function loadCoverage(module: string | undefined, file: string | true, io: CliIO): Promise<unknown> {
  if (file !== true) return parseCoverage(await loadFile(file, io.cwd, '--coverage'), file)
  if (module !== undefined) {
    throw badUsageError(
      '--coverage explores only the agent machine. For your own machine write --coverage=FILE, ' +
        `with what 'statewright paths ${quoteShellWord(module)} --json' prints.`,
      '--coverage',
    )
  }
  const { agentSpace, generatePaths } = await import('../../testing/index.js')
  return generatePaths(agentMachine, agentSpace()).coverage
}

function parseCoverage(json: string, file: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new CliError('bad_coverage', `--coverage: '${file}' is not JSON.`, '--coverage', { cause: error })
  }
}

async function writeDrawing(drawn: string, file: string | undefined, io: CliIO): Promise<void> {
  if (file === undefined) {
    io.stdout.write(drawn)
    return
  }
  try {
    await writeFile(resolve(io.cwd, file), drawn)
  } catch (error) {
    const why = describeReadError(error, file).replace('cannot be read', 'cannot be written')
    throw new CliError('unwritable_file', `--out: ${why}`, '--out', { cause: error })
  }
}
