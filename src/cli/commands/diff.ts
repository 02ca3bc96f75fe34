import { writeFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import type { MachineDiff } from '../../testing/diff/diff-machines.js'
import { stripControls } from '../../core/format/format-words.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { describeReadError } from '../load-file.js'
import { loadMachinePair, type MachineSpace } from '../machine-space.js'
import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'
import { writeGenerated } from '../write-generated.js'

const formats = ['text', 'json', 'svg', 'mermaid'] as const
type Format = (typeof formats)[number]

const options = {
  format: { short: 'f', value: 'FORMAT', about: `one of ${formats.join(', ')} (default: text)` },
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
  emit: { value: 'DIR', about: 'write the traces as a jest file that AFTER fails, into this folder' },
  limit: { value: 'N', about: 'compare at most this number of pairs of states (default: 20000)' },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export const diffCommand: Command = {
  name: 'diff',
  about: 'Shows on which events two versions of a state machine behave differently.',
  positional: 'BEFORE AFTER',
  options,
  notes: [
    'BEFORE and AFTER are .js, .mjs or .ts files with an XState v5 machine as their default export. As for paths, they may\n' +
      'also export inputs, alphabet and serializeState; those of both are tried.\n' +
      'Compared are states, emitted events and outputs. svg needs: npm install @hpcc-js/wasm-graphviz',
    'Exit codes: 0 no difference, 1 the machines differ, 2 bad usage or machine.',
    'Examples:\n' +
      '  statewright diff before.machine.ts after.machine.ts\n' +
      '  statewright diff before.machine.ts after.machine.ts --format svg --out difference.svg\n' +
      '  statewright diff before.machine.ts after.machine.ts --emit test/paths',
  ],
  execute: async (args, io) => {
    const { text, positionals } = parseOptions(args, options)
    const [first, second] = expectTwoModules(positionals)
    const format = parseFormat(text('format') ?? 'text')
    const limit = parseWholeNumber('--limit', text('limit'), 1)
    const pair = await loadMachinePair(first, second, io.cwd)
    for (const note of pair.notes) io.stderr.write(`statewright: ${note}\n`)
    const { diffMachines } = await import('../../testing/index.js')
    const diff = diffMachines(pair.before.machine, pair.after.machine, {
      ...pair.options,
      ...(limit !== undefined && { limit }),
    })
    await writeDiff(await formatDiff(diff, format), text('out'), io)
    if (format !== 'text' && diff.bounded !== null) io.stderr.write(`statewright: ${diff.bounded}\n`)
    const folder = text('emit')
    if (folder !== undefined && diff.differences.length > 0) await emitTests(diff, pair.after, folder, io)
    return diff.differences.length === 0 ? exitCodes.completed : exitCodes.error
  },
}

function expectTwoModules(positionals: readonly string[]): [string, string] {
  const [first, second, ...more] = positionals
  if (first === undefined || second === undefined)
    throw badUsageError('Name two modules: statewright diff BEFORE AFTER.', 'MODULE')
  if (more.length === 0) return [first, second]
  throw badUsageError(`Two modules at a time: '${more.join("', '")}' is too much.`, 'MODULE')
}

function parseFormat(name: string): Format {
  const format = formats.find((each) => each === name)
  if (format) return format
  throw badUsageError(`--format must be one of ${formats.join(', ')} (is '${name}').`, '--format')
}

async function formatDiff(diff: MachineDiff, format: Format): Promise<string> {
  if (format === 'text') return `${stripControls(String(diff))}\n`
  if (format === 'json') return `${JSON.stringify(toJson(diff))}\n`
  const { toDifferenceChart, toMermaid, toSvg } = await import('../../diagram/index.js')
  const { chart, look } = toDifferenceChart(diff.differences)
  return format === 'svg' ? toSvg(chart, { look }) : toMermaid(chart, look)
}

/** Without snapshots: their contexts may be large. */
function toJson({ differences, pairs, bounded, declared }: MachineDiff): unknown {
  const brief = ({ input, steps }: MachineDiff['differences'][number]['before']): unknown => ({
    input,
    steps: steps.map(({ event, label, state: { value, status }, transitions, ...more }) => ({
      event,
      label,
      state: { value, status },
      transitions,
      ...more,
    })),
  })
  return {
    differences: differences.map(({ before, after, ...difference }) => ({
      ...difference,
      before: brief(before),
      after: brief(after),
    })),
    pairs,
    bounded,
    declared,
  }
}

async function writeDiff(text: string, file: string | undefined, io: CliIO): Promise<void> {
  if (file === undefined) {
    io.stdout.write(text)
    return
  }
  try {
    await writeFile(resolve(io.cwd, file), text)
  } catch (error) {
    const why = describeReadError(error, file).replace('cannot be read', 'cannot be written')
    throw new CliError('unwritable_file', `--out: ${why}`, '--out', { cause: error })
  }
}

const generatedNote = 'Generated by `statewright diff`: what a machine did before a change.'

async function emitTests(diff: MachineDiff, after: MachineSpace, dir: string, io: CliIO): Promise<void> {
  const { generateJestTests } = await import('../../testing/index.js')
  const folder = resolve(io.cwd, dir)
  const paths = diff.differences.map(({ before }) => before)
  const text = generateJestTests(paths, {
    title: `what ${after.machine.id} did before`,
    header: generatedNote,
    imports: [`import { createMachineHarness, replay } from 'statewright/testing'`, after.importFor(folder)],
    harness: 'createMachineHarness(machine)',
  })
  const name = `${after.machine.id.replace(/[^\w-]+/g, '-') || 'machine'}.diff.test.js`
  const file = await writeGenerated(folder, name, text, `// ${generatedNote}`)
  io.stderr.write(
    `Wrote ${paths.length} ${paths.length === 1 ? 'test' : 'tests'} to ${relative(io.cwd, file)}\n`,
  )
}
