/**
 * A chat page without a build step, with `index.html` and this server. It asks for approval before it books. The conversation
 * continues after a reload in the middle of an answer, in a second tab, and after a restart of the server.
 *
 *   npm run chat    # in a clone. With OPENAI_API_KEY it uses a real model
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequestListener } from '@remix-run/node-fetch-server'
import { createAgent, defineTool, openaiChat } from 'statewright'
import { aguiHandler } from 'statewright/agui'
import { startRehearsal } from 'statewright/rehearsal'
import { fileStore } from 'statewright/stores/file'
import { z } from 'zod'

const {
  OPENAI_API_KEY,
  OPENAI_MODEL = 'gpt-5-mini',
  CHAT_DIR = '.statewright/chat',
  PORT = '3000',
} = process.env

const trains = [
  { leaves: '8:02', arrives: '12:15', price: 39 },
  { leaves: '9:32', arrives: '13:10', price: 59 },
]

const findTrains = defineTool({
  name: 'find_trains',
  description: 'Lists the trains of a day with their prices in EUR.',
  input: z.object({ to: z.string() }),
  readOnly: true,
  execute: ({ to }) => ({ to, trains }),
})

const book = defineTool({
  name: 'book',
  description: 'Books a seat. Costs money.',
  input: z.object({ to: z.string(), leaves: z.string(), price: z.number() }),
  needsApproval: true,
  execute: ({ to, leaves }) => `Booked: ${to}, ${leaves}, coach 7, seat 42.`,
})

/** The answers of the script that plays the model without a key. It only understands "to PLACE". */
function rehearsed({ body: { messages } }) {
  const last = messages.at(-1)
  const pace = { chunkSize: 3, chunkDelayMs: 30 }
  const says = (text, ...toolCalls) => ({ ...pace, text, ...(toolCalls.length > 0 && { toolCalls }) })
  const message = messages.findLast(({ role }) => role === 'user')
  const [, to] = /\b[Tt]o (\p{Lu}\p{L}+)/u.exec(JSON.stringify(message.content)) ?? []
  if (to === undefined)
    return says('I am a script, not a model: I only understand a destination, such as "To Lisbon".')
  if (last.role !== 'tool') {
    return {
      ...says(`I will look up the trains to ${to}.`, { name: 'find_trains', arguments: { to } }),
      reasoning: 'The message names a place. I need the timetable before I can offer anything.',
    }
  }
  if (last.content.startsWith('Booked')) return says(`Done. ${last.content} Have a good journey!`)
  if (!last.content.includes('trains'))
    return says('Then I will not book anything. What would suit you better?')
  const offer =
    'There are two: at 8:02 for 39 EUR, and at 9:32 for 59 EUR. The earlier one is cheaper, so I would take that.'
  return says(offer, { name: 'book', arguments: { to, leaves: '8:02', price: 39 } })
}

async function rehearsal() {
  const { url } = await startRehearsal({ scenario: { turns: [rehearsed], onExhausted: 'loop' } })
  return openaiChat({ model: 'rehearsal', baseURL: url, apiKey: 'none' })
}

const agent = createAgent({
  model: OPENAI_API_KEY ? openaiChat({ model: OPENAI_MODEL }) : await rehearsal(),
  instructions: 'You help people book trains. Look up the timetable before you offer anything.',
  tools: [findTrains, book],
  store: fileStore({ dir: CHAT_DIR }),
})

// Only this machine can connect. A server with several users returns here the owner whose conversations a request may see.
const chat = aguiHandler({ agent, authorize: 'none' })

// Another site's host name may resolve to this machine, so the server answers only requests for its own names.
const ownNames = new Set(['127.0.0.1', 'localhost'])

const server = createServer(
  createRequestListener(async (request) => {
    if (!ownNames.has(new URL(request.url).hostname)) return new Response('Forbidden', { status: 403 })
    if (new URL(request.url).pathname !== '/') return chat(request)
    const page = await readFile(new URL('index.html', import.meta.url), 'utf8')
    const shown = OPENAI_API_KEY ? page : page.replace('id="script" hidden', 'id="script"')
    return new Response(shown, { headers: { 'content-type': 'text/html; charset=utf-8' } })
  }),
)
server.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`Open http://127.0.0.1:${server.address().port}`)
})
