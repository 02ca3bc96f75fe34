import { checkScorers, type Scorers } from '../../testing/evaluate/score-run.js'
import { EvaluationError } from '../../testing/evaluate/evaluation-case.js'
import { CliError } from '../cli-error.js'
import { loadModule } from '../load-module.js'

const expected =
  'Export one or several by name: export const score = { exact: (result, { expected }) => result.output === expected }.'

/** The scorers of a module: its export `score`, or its default export. Throws a CliError for what is none. */
export async function loadScorers(path: string, cwd: string): Promise<Scorers> {
  const refuse = (message: string, cause?: unknown): CliError =>
    new CliError('bad_scorer', `--score: ${message}`, '--score', { cause })
  const { score, default: byDefault } = await loadModule(path, cwd, refuse)
  const exported = score ?? byDefault
  if (exported === undefined) throw refuse(`'${path}' has no scorer. ${expected}`)
  try {
    return checkScorers(exported)
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error
    throw refuse(
      `'${path}' has no scorer that can be used: ${error.message.replace(/^evaluate: /, '')} ${expected}`,
      error,
    )
  }
}
