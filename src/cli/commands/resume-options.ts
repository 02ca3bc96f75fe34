import { badUsageError } from '../cli-error.js'
import { type OptionSpecs, parseOptions } from '../parse-options.js'
import {
  agentOptionSpecs,
  type CommonOptions,
  drainOptionSpec,
  outputOptionSpecs,
  readCommonOptions,
  inlineScenario,
  storeOptionSpec,
} from './common-options.js'

export const resumeOptionSpecs = {
  approve: {
    value: 'CALL@FP[=JSON]',
    about: 'let a call run, with other arguments if given; may be repeated',
  },
  reject: { value: 'CALL@FP[=WHY]', about: 'refuse a call; the model reads why; may be repeated' },
  output: { value: 'CALL@FP=TEXT', about: 'the result of a call that you carried out; may be repeated' },
  ...agentOptionSpecs,
  ...storeOptionSpec,
  ...drainOptionSpec,
  ...outputOptionSpecs,
} satisfies OptionSpecs

export type AnswerKind = 'approve' | 'reject' | 'output'

/** An answer as it was typed. The pending calls decide where the call's id ends. */
export interface GivenAnswer {
  kind: AnswerKind
  text: string
}

export interface ResumeCommandOptions extends CommonOptions {
  id: string
  /** Undefined: not given. `-`: stdin. */
  message: string | undefined
  answers: readonly GivenAnswer[]
}

/** Reads the arguments of `statewright resume`. Throws a CliError for invalid or contradictory ones. */
export function readResumeOptions(args: readonly string[]): ResumeCommandOptions {
  const given = parseOptions(inlineScenario(args), resumeOptionSpecs)
  const [id, ...words] = given.positionals
  if (id === undefined) {
    throw badUsageError("Which session? Give its id: 'statewright sessions list' shows them.", 'ID')
  }
  const answers = (['approve', 'reject', 'output'] as const).flatMap((kind) =>
    given.all(kind).map((text): GivenAnswer => ({ kind, text })),
  )
  return {
    ...readCommonOptions(given),
    id,
    message: words.length === 0 ? undefined : words.join(' '),
    answers,
  }
}
