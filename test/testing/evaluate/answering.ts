import { type ModelProvider, openaiChat } from '../../../src/index.js'
import { type Rehearsal, startRehearsal, type TurnFunction } from '../../../src/rehearsal/index.js'

export type Turn = Awaited<ReturnType<TurnFunction>>

/** One million tokens cost a dollar. */
export const prices = { m: { inputPerMillion: 1, outputPerMillion: 1 } }

export interface Answering {
  model: ModelProvider
  rehearsal: Rehearsal
}

const opened: Rehearsal[] = []

/** A model that answers by the user's last message, and by the number of results since then. */
export async function answering(
  answer: (prompt: string, results: number, request: Parameters<TurnFunction>[0]) => Turn | Promise<Turn>,
): Promise<Answering> {
  const turn: TurnFunction = (request) => {
    const { messages } = request.body
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const prompt = messages[at]?.content
    const results = messages.slice(at).filter(({ role }) => role === 'tool').length
    return answer(typeof prompt === 'string' ? prompt : JSON.stringify(prompt), results, request)
  }
  const rehearsal = await startRehearsal({ scenario: { turns: [turn], onExhausted: 'repeatLast' } })
  opened.push(rehearsal)
  return { rehearsal, model: openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' }) }
}

export async function closeRehearsals(): Promise<void> {
  await Promise.all(opened.splice(0).map((one) => one.close()))
}
