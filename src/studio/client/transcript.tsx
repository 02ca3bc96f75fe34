import { formatCount } from '../../core/format/format-words.js'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { MomentView, RecordRow, ShownMessage } from '../protocol.js'
import { Instructions, Message } from './message.js'
import { Markdown } from './markdown.js'
import type { RunPage } from './run-page.js'

const shownMessages = 40
/** Height of the search bar in pixels. */
const barHeight = 70

export function Transcript({ run, moment }: { run: RunPage; moment: MomentView }) {
  const { view, row, place, wantWhole } = run
  const { transcript: messages, earlier, instructions } = moment
  const streaming = place === view.rows.length - 1 ? run.streaming : ''
  const settled = moment.seq === row.seq ? row.calls : noCalls
  const { speaker, state, error: failure } = (moment.context ?? {}) as Partial<AgentContext>
  const error = state === 'ERROR' ? (failure?.message ?? null) : null
  const onEdit = run.canAct ? run.openFork : null
  const [limit, setLimit] = useState(shownMessages)
  const [words, setWords] = useState('')
  const [isRaw, setRaw] = useState(false)
  const [chosen, setChosen] = useState<string | null>(null)
  const box = useRef<HTMLDivElement>(null)
  const last = messages.at(-1)
  // This is a layout effect, because otherwise each record would be painted twice.
  useLayoutEffect(() => {
    const panel = box.current?.closest('.panel')
    if (!panel || words !== '') return
    panel.scrollTop = panel.scrollHeight
    // In a large batch the new result is above the end. Call ids are unique only within a batch: take the last.
    const id = CSS.escape(settled[0]?.id ?? '')
    const [call] = [...panel.querySelectorAll(`[data-call="${id}"]`)].slice(-1)
    const [seen, own, all] = [panel, call, call?.closest('.message')].map((one) =>
      one?.getBoundingClientRect(),
    )
    if (!seen || !own || !all) return
    // Show the whole batch if it fits.
    const { top } = own.bottom - all.top < seen.height - barHeight ? all : own
    const above = barHeight + seen.top - top
    // scrollIntoView would also scroll the page.
    if (above > 0) panel.scrollTop -= above
  }, [last, streaming, settled])
  const found = useMemo(() => findMessages(messages, words), [messages, words])
  const current = found.findIndex(({ id }) => id === chosen)
  // Show the oldest match, however far up it is.
  const oldest = found[0] === undefined ? messages.length : messages.indexOf(found[0])
  const over = Math.max(0, messages.length - limit)
  const hidden = Math.min(over - (over % 20), oldest)
  useLayoutEffect(() => {
    paintFound(box.current, words)
  })
  useEffect(() => () => paintFound(null, ''), [])
  useEffect(() => {
    box.current?.querySelector('.message.current')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  const go = (by: 1 | -1): void => {
    const next = current === -1 ? (by > 0 ? 0 : found.length - 1) : current + by
    setChosen(found[(next + found.length) % found.length]?.id ?? null)
  }
  if (messages.length === 0 && streaming === '' && error === null) {
    return <p class="empty">No messages yet</p>
  }
  const isFound = new Set(found)
  return (
    <div class="transcript" ref={box}>
      <form
        class="transcript-bar"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          go(1)
        }}
      >
        <label class="sr" for="find-messages">
          Search the transcript
        </label>
        <input
          id="find-messages"
          type="search"
          placeholder="Search the transcript"
          value={words}
          onInput={(event) => {
            setWords(event.currentTarget.value)
            setChosen(null)
            if (earlier > 0) wantWhole(true)
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !event.shiftKey) return
            event.preventDefault()
            go(-1)
          }}
        />
        {words !== '' && (
          <output>
            {current === -1 ? formatCount(found.length, 'message') : `${current + 1} of ${found.length}`}
          </output>
        )}
        {found.length > 0 && (
          <>
            <button type="button" class="quiet-button" onClick={() => go(-1)}>
              Before
            </button>
            <button type="submit" class="quiet-button">
              Next
            </button>
          </>
        )}
        <button type="button" class="quiet-button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
          As written
        </button>
      </form>
      {instructions && <Instructions instructions={instructions} onEdit={onEdit} />}
      {hidden + earlier > 0 && (
        <button
          class="quiet-button"
          onClick={() => {
            setLimit(limit + 200)
            if (earlier > 0) wantWhole(true)
          }}
        >
          {hidden + earlier} earlier messages
        </button>
      )}
      {messages.slice(hidden).map((message) => (
        <Message
          key={message.id}
          message={message}
          isLast={message === last}
          isRaw={isRaw}
          isFound={isFound.has(message)}
          isCurrent={message.id === chosen}
          onEdit={onEdit}
        />
      ))}
      {error !== null && (
        <article class="message failure">
          <header>Error</header>
          <p class="said as-written">{error}</p>
        </article>
      )}
      {streaming !== '' && (
        <article class="message assistant streaming" aria-busy="true">
          <header>{speaker ?? 'Agent'}</header>
          <div class="said">
            <Markdown text={streaming} />
          </div>
        </article>
      )}
    </div>
  )
}

const noCalls: RecordRow['calls'] = []

function findMessages(messages: readonly ShownMessage[], words: string): ShownMessage[] {
  const wanted = words.trim().toLowerCase()
  if (wanted === '') return []
  const has = (text: string | null): boolean => text !== null && text.toLowerCase().includes(wanted)
  return messages.filter(
    ({ text, reasoning, calls }) =>
      has(text) ||
      has(reasoning) ||
      calls.some((call) => has(call.name) || has(call.arguments) || has(call.result)),
  )
}

/** Highlights the words. Browsers without CSS highlights only filter the messages. */
function paintFound(box: HTMLElement | null, words: string): void {
  if (!('highlights' in CSS)) return
  CSS.highlights.delete('found')
  const wanted = words.trim().toLowerCase()
  if (box === null || wanted === '') return
  const ranges: Range[] = []
  for (const article of box.querySelectorAll('.message.found')) {
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const text = node.nodeValue?.toLowerCase() ?? ''
      for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
        const range = document.createRange()
        range.setStart(node, at)
        range.setEnd(node, Math.min(at + wanted.length, node.nodeValue?.length ?? 0))
        ranges.push(range)
      }
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges))
}
