import { mcpServer } from '../../../src/mcp/server/index.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import { passing } from '../../support/passing.js'
import { grants } from '../grants.js'
import { listOf, type Place, type Surface, type Told } from '../surface.js'
import { chatId, firstMessage } from '../world.js'

const tasks = 'io.modelcontextprotocol/tasks'
/** The tool of each kind of agent has the name of its agent. */
const toolOf = ({ process: { agents } }: Place): string => agents?.names[0] ?? ''

interface Asked {
  method: string
  params: (place: Place) => Record<string, unknown>
}

/** The server's full answer to a request of the 2026 revision. */
async function askedOf(place: Place, { method, params: toParams }: Asked): Promise<Told> {
  const handler = mcpServer({
    agents: listOf(place),
    authorize: () => grants[place.who] as never,
    onError: () => undefined,
  })
  const params = toParams(place)
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, extensions: { [tasks]: {} } },
  }
  const name = params['taskId'] ?? params['name']
  const request = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': String(name),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
  const response = await passing(place.world.clock, handler(request))
  const shown = await response.text()
  return { refused: refusalOf(shown), shown }
}

/** The code of a refusal, or its text if the protocol has no code for it. */
function refusalOf(shown: string): string | null {
  const { error, result } = JSON.parse(shown) as {
    error?: { code: number | string; message: string; data?: { reason?: string } }
    result?: { isError?: boolean; content?: { text: string }[] }
  }
  if (error) {
    if (error.message.startsWith('There is no task')) return 'unknown_task'
    return error.data?.reason ?? String(error.code)
  }
  if (result?.isError !== true) return null
  const text = result.content?.[0]?.text ?? ''
  return /^The session '[^']*' (?:is still working|belongs|has started)/.test(text) ? 'session_in_use' : null
}

const surface = (
  as: string,
  does: Surface['does'],
  request: Asked,
  more: Partial<Surface> = {},
): Surface => ({
  of: 'mcpServer',
  as,
  does,
  knows: 'people',
  agents: 'listed',
  ...more,
  use: (place) => askedOf(place, request),
})

const called = (message: string, more: object = {}): Asked => ({
  method: 'tools/call',
  params: (place) => ({ name: toolOf(place), arguments: { message, session: chatId }, ...more }),
})

/** As `src/mcp/server/questions.ts` names the call that waits. */
const keyOf = ({ question: { callId, messageId = '', fingerprint } }: Place): string =>
  `${callId}@${sha256(`${messageId}\n${fingerprint}`).slice(0, 16)}`

const answered = (content: object): Asked => ({
  method: 'tasks/update',
  params: (place) => ({
    taskId: chatId,
    inputResponses: { [keyOf(place)]: { action: 'accept', content } },
  }),
})

export const mcpSurfaces: Surface[] = [
  surface('another call', 'begin', called('Again.')),
  surface('the call again', 'call again', called(firstMessage)),
  surface('a forged state', 'look', called(firstMessage, { requestState: `{"task":"${chatId}"}` }), {
    isSilent: true,
  }),
  surface('a task', 'follow', { method: 'tasks/get', params: () => ({ taskId: chatId }) }),
  surface('an approval', 'answer', answered({ confirm: true })),
  surface('a rejection', 'answer', answered({ confirm: false, why: 'No.' })),
  surface('an approval with a grant', 'answer', answered({ confirm: true, grant: {} })),
  surface('a cancel', 'stop', { method: 'tasks/cancel', params: () => ({ taskId: chatId }) }),
]
