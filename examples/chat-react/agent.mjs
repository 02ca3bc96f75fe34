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
  description: 'Lists the trains of a day with their prices in EUR.',
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

export const isRehearsal = !OPENAI_API_KEY
export const agent = createAgent({
  model: isRehearsal ? await rehearse() : openaiChat({ model: OPENAI_MODEL }),
  instructions:
    'You help people book trains. Look up the timetable, offer trains, let the user pick a seat, then book.',
  tools: [localTime, findTrains, pickSeat, book],
  store,
})

/** A script that plays the model. It only understands "to PLACE", and "back" for the same trip again. */
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
    const to = findPlace(messages.filter((message) => message.role === 'user'))
    if (to === undefined)
      return says('I am a script, not a model: I only understand a destination, such as "To Lisbon".')
    if (role !== 'tool')
      return says('I will look up the trains for tomorrow.', ['local_time', {}], ['find_trains', { to }])
    if (result.includes('Booked'))
      return says(`Done: the 8:02 to ${to}. The ticket is on its way to you. Have a good journey!`)
    if (/\b(12A|12C|31B)\b/.test(result) && !result.includes('arrives')) {
      const [seat] = /\b(12A|12C|31B)\b/.exec(result)
      return says(`Seat ${seat} it is.`, ['book', { to, leaves: '8:02', seat, price: 39 }])
    }
    if (result.includes('reject') || result.includes('declined') || result.includes('No.'))
      return says('Then I will not book anything. What would suit you better?')
    return says(
      `Two trains go to ${to} tomorrow morning:\n\n- **8:02** → 12:15, 39 EUR\n- **9:32** → 13:10, 59 EUR\n\nThe earlier one is cheaper. Where would you like to sit?`,
      ['pick_seat', { train: '8:02', seats: ['12A', '12C', '31B'] }],
    )
  }
  const { url } = await startRehearsal({ scenario: { turns: [turn], onExhausted: 'loop' } })
  return openaiChat({ model: 'rehearsal', baseURL: url, apiKey: 'none' })
}

function findPlace(messages) {
  const texts = messages.map(({ content }) => JSON.stringify(content)).reverse()
  const places = texts.map((text) => /\b[Tt]o (\p{Lu}\p{L}+)/u.exec(text)?.[1])
  return /\bback\b/i.test(texts[0] ?? '') ? places.find(Boolean) : places[0]
}
