import { badUsage } from './cli-error.js'
import type { CliIO } from './command.js'
import { readPiped } from './read-piped.js'

/** The prompt: as given, from stdin when it is `-`, else the fallback, else what is piped in. */
export async function choosePrompt(
  given: string | undefined,
  fallback: string | undefined,
  io: CliIO,
): Promise<string> {
  const takesPipe =
    given === '-' || (given === undefined && fallback === undefined && io.stdin.isTTY !== true)
  const prompt = takesPipe ? await readPiped(io) : (given ?? fallback ?? '')
  if (prompt.trim() !== '') return prompt
  throw badUsage(
    takesPipe
      ? 'Nothing came in on stdin. Pipe a prompt in, or give it as an argument.'
      : 'There is no prompt. Give one, such as: statewright run "What changed last week?"',
    'PROMPT',
  )
}
