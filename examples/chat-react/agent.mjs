/** The page's agent, which books trains. The page imports its tool types from here. */
import { createAgent, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'
import { fileStore } from 'statewright/stores/file'
import { z } from 'zod'

const { OPENAI_API_KEY, OPENAI_MODEL = 'gpt-5-mini', CHAT_DIR = '.statewright' } = process.env

// The page runs this tool itself, in onToolCall.
const localTime = defineTool({
  name: 'local_time',
  description: "The user's date, time and time zone.",
  input: z.object({}),
  client: true,
})

// The page shows the seats, and the person picks one.
const pickSeat = defineTool({
  name: 'pick_seat',
  description: 'Lets the user pick one of the free seats of a train.',
  input: z.object({ train: z.string(), seats: z.array(z.string()) }),
  client: true,
})

const findTrains = defineTool({
  name: 'find_trains',
  description: 'The trains of a day, with their prices in EUR.',
  input: z.object({ to: z.string() }),
  readOnly: true,
  execute: ({ to }) => [
    { to, leaves: '8:02', arrives: '12:15', price: 39, free: ['12A', '12C', '31B'] },
    { to, leaves: '9:32', arrives: '13:10', price: 59, free: ['4D'] },
  ],
})

const book = defineTool({
  name: 'book',
  description: 'Books a seat. Costs money.',
  input: z.object({ to: z.string(), leaves: z.string(), seat: z.string(), price: z.number() }),
  needsApproval: true,
  execute: ({ to, leaves, seat }) => `Booked: ${to}, ${leaves}, seat ${seat}.`,
})

/** @type {import('statewright').SessionStore} */
export const store = fileStore({ dir: CHAT_DIR })

export const agent = createAgent({
  model: OPENAI_API_KEY ? openaiChat({ model: OPENAI_MODEL }) : await rehearse(),
  instructions: 'You help people to book trains. Look what goes, offer it, let them pick a seat, then book.',
  tools: [localTime, findTrains, pickSeat, book],
  store,
})

/** A scripted model, unused with a key. */
async function rehearse() {
  const says = (text, ...calls) => ({
    text,
    chunkSize: 3,
    chunkDelayMs: 25,
    toolCalls: calls.map(([name, args]) => ({ name, arguments: args })),
  })
  const turn = ({ body: { messages } }) => {
    const { role, content } = messages.at(-1)
    const result = role === 'tool' ? JSON.stringify(content) : ''
    if (role !== 'tool')
      return says('I look what goes tomorrow.', ['local_time', {}], ['find_trains', { to: 'Lisbon' }])
    if (result.includes('Booked'))
      return says(
        'Done: the 8:02 to Lisbon, with a table at the window. The ticket is on its way to you. Have a good journey!',
      )
    if (/\b(12A|12C|31B)\b/.test(result) && !result.includes('arrives')) {
      const [seat] = /\b(12A|12C|31B)\b/.exec(result)
      return says(`Seat ${seat} it is.`, ['book', { to: 'Lisbon', leaves: '8:02', seat, price: 39 }])
    }
    if (result.includes('reject') || result.includes('declined') || result.includes('No.'))
      return says('Then I book nothing. Tell me what would suit you better.')
    return says(
      'Two trains go to Lisbon tomorrow morning:\n\n- **8:02** → 12:15, 39 EUR\n- **9:32** → 13:10, 59 EUR\n\nThe earlier one is cheaper. Where would you like to sit?',
      ['pick_seat', { train: '8:02', seats: ['12A', '12C', '31B'] }],
    )
  }
  const { url } = await startRehearsal({ scenario: { turns: [turn], onExhausted: 'loop' } })
  return openaiChat({ model: 'rehearsal', baseURL: url, apiKey: 'none' })
}
