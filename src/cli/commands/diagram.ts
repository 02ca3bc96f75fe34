import { agentMachine } from '../../../machines/agent.machine.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { badUsageError, CliError, type CliIO, defineCommand } from '../command.js'
import { loadFile, loadMachine } from '../load.js'
import { excludeBoth, outOption, refuseStray } from '../options.js'
import { writeOutput } from '../output.js'
import { showProgress } from './machines.js'

const formats = ['svg', 'mermaid', 'json', 'stately', 'scxml'] as const

export const diagramCommand = defineCommand({
  name: 'diagram',
  about: 'Draws a state machine.',
  positional: '[MODULE]',
  options: {
    format: {
      short: 'f',
      value: 'FORMAT',
      choices: formats,
      about: `one of ${formats.join(', ')} (default: svg)`,
    },
    state: { value: 'STATE', about: 'draw only this compound state, such as WAITING_FOR_TOOL (svg)' },
    overview: { about: 'draw only the top-level states, or those inside --state (svg)' },
    coverage: {
      value: 'FILE',
      optional: true,
      about: 'show how often each transition is taken, from a coverage JSON file or a new exploration (svg)',
    },
    ...outOption,
  },
  notes: [
    'Without MODULE, the machine is the agent loop. MODULE is a .js, .mjs or .ts file with an XState v5 machine as its default ' +
      'export, or as its only machine.',
    "The stately format is a file to paste into Stately's editors; json is the machine's config. svg without --overview needs: npm " +
      'install @hpcc-js/wasm-graphviz',
    'Examples:\n' +
      '  statewright diagram --out agent.svg\n' +
      '  statewright diagram --state RUNNING.judging --out judging.svg\n' +
      '  statewright diagram ./machine.mjs --format mermaid',
  ],
  execute: async ({ positionals: [module], values }, io) => {
    const { format = 'svg', state, overview, coverage, out } = values
    if (format !== 'svg') refuseStray(values, ['state', 'overview', 'coverage'], '--format svg')
    excludeBoth(values, 'overview', 'coverage', 'An overview does not show individual transitions')
    const machine = module === undefined ? agentMachine : await loadMachine(module, io.cwd)
    const counted = coverage && (await readCoverage(module, coverage, io))
    const diagram = await import('../../diagram/index.js')
    const draw = {
      json: () => diagram.toMachineJson(machine),
      stately: () => diagram.toStately(machine),
      mermaid: () => diagram.toMermaid(diagram.toChart(machine)),
      scxml: () => diagram.toScxml(diagram.toChart(machine)),
      svg: () => {
        const chart = diagram.toChart(machine)
        if (overview) return diagram.toOverviewSvg(chart, undefined, state)
        const counts = coverage === undefined ? undefined : diagram.readTransitionCounts(counted, chart)
        return diagram.toSvg(chart, { state, counts })
      },
    }
    await writeOutput(await draw[format](), out, io)
  },
})

/** A `Coverage`, from its file or from an exploration. */
async function readCoverage(module: string | undefined, file: string | true, io: CliIO): Promise<unknown> {
  if (file !== true) {
    const json = await loadFile(file, io.cwd, '--coverage')
    try {
      return JSON.parse(json)
    } catch (cause) {
      throw new CliError('bad_coverage', `--coverage: '${file}' is not valid JSON.`, '--coverage', { cause })
    }
  }
  if (module !== undefined)
    throw badUsageError(
      '--coverage explores only the agent machine. For your own machine write --coverage=FILE, ' +
        `with the output of 'statewright paths ${quoteShellWord(module)} --json'.`,
      '--coverage',
    )
  const { agentSpace, generatePaths } = await import('../../testing/index.js')
  const { coverage } = showProgress(undefined, io, (shown) =>
    generatePaths(agentMachine, { ...agentSpace(), ...shown }),
  )
  return coverage
}
