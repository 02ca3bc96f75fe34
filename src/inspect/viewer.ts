/** What the page is told, as JSON in itself. */
export interface ViewerConfig {
  /** The editor or inspector in the frame. */
  frameUrl: string
  /** With which message it says that it is there. */
  greeting: string
  /** In words: `Stately's editor`. */
  frameName: string
  /** Where frames or inspection events come from: `ws:` or, as server-sent events, `http:`. */
  feedUrl: string
  /** Our own chart, as SVG; null: there is none, and the states are shown as a list. */
  chartUrl: string | null
  /** How long the frame may take to say that it is there, in milliseconds. */
  patienceMs: number
}

/** Where a run stood after something had happened. */
export interface StatelyFrame {
  /** The number of the record in the session's log. */
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  snapshot: { value: unknown; status: string; context: object }
  event: { type: string }
}

/** Of a machine's config, what the page itself reads. */
export interface MachineStates {
  states?: Record<string, MachineStates>
}

/** What the page of a stored session is told, one after the other. */
export type StatelyMessage =
  | { type: 'machine'; machine: MachineStates }
  | { type: 'session'; title: string; isLive: boolean }
  | { type: 'frame'; frame: StatelyFrame }
  | { type: 'problem'; text: string }

/**
 * The script of the page, written into it as it stands: it knows nothing but its config. It hands the frame what comes
 * in, in order; and where the frame does not answer, it says so and shows the chart in its place.
 */
export function viewer(config: ViewerConfig): void {
  const find = (id: string): HTMLElement => document.getElementById(id) as HTMLElement
  const shown = find('frame') as HTMLIFrameElement
  const range = find('at') as HTMLInputElement
  const { origin } = new URL(config.frameUrl)
  const isStored = !config.feedUrl.startsWith('ws')
  const frames: StatelyFrame[] = []
  const waiting: object[] = []
  let machine: MachineStates | null = null
  let root: unknown = null
  let at = -1
  let isReady = false
  let isAtEnd = !isStored
  /** A stored session plays from its beginning, once there is something to show it. */
  let isToPlay = false
  let playing: ReturnType<typeof setInterval> | null = null

  const post = (message: object): void => shown.contentWindow?.postMessage(message, origin)

  addEventListener('message', ({ source, origin: from, data }) => {
    const { type } = (data ?? {}) as { type?: unknown }
    if (source !== shown.contentWindow || from !== origin || type !== config.greeting) return
    isReady = true
    document.body.classList.remove('alone')
    for (const message of waiting.splice(0)) post(message)
    init()
  })

  function init(): void {
    if (!isReady || machine === null || !isStored) return
    post({
      type: '@statelyai.init',
      machine,
      mode: 'inspecting',
      theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
      readOnly: true,
      capabilities: { edit: false, export: false, ai: false, simulate: false, inspect: true },
      leftPanels: [],
      rightPanels: [],
      activePanels: [],
    })
    show(at)
    playAtFirst()
  }

  setTimeout(() => {
    if (!isReady) void alone()
  }, config.patienceMs)

  /** Our own chart in the place of the frame. */
  async function alone(): Promise<void> {
    find('why').textContent =
      `${config.frameName} (${origin}) has not answered for ${config.patienceMs / 1000} seconds: ` +
      'it cannot be reached from here, or needs something else by now. This is our own chart; it has been told nothing of the run.'
    document.body.classList.add('alone')
    if (config.chartUrl === null) drawList()
    else {
      const text = await (await fetch(config.chartUrl)).text()
      const picture = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement
      find('chart').replaceChildren(document.adoptNode(picture))
    }
    mark()
    playAtFirst()
  }

  /** The machine's states as a list, where nobody has drawn it. */
  function drawList(): void {
    if (machine !== null) find('chart').replaceChildren(listOf(machine, ''))
  }

  function listOf({ states = {} }: MachineStates, above: string): HTMLUListElement {
    const list = document.createElement('ul')
    for (const [name, inner] of Object.entries(states)) {
      const item = document.createElement('li')
      const label = document.createElement('span')
      label.textContent = name
      label.dataset.state = above + name
      item.append(label, listOf(inner, `${above}${name}.`))
      list.append(item)
    }
    return list
  }

  /** `RUNNING`, `RUNNING.asking`, `RUNNING.asking.requesting`. */
  function pathsOf(value: unknown, above = ''): string[] {
    if (typeof value === 'string') return [above + value]
    return Object.entries((value ?? {}) as Record<string, unknown>).flatMap(([name, inner]) => [
      above + name,
      ...pathsOf(inner, `${above}${name}.`),
    ])
  }

  function mark(): void {
    const frame = frames[at]
    const active = frame ? pathsOf(frame.snapshot.value) : []
    for (const state of document.querySelectorAll<HTMLElement | SVGElement>('[data-state]')) {
      state.classList.toggle('active', active.includes(state.dataset.state ?? ''))
    }
    document.querySelector('.active')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }

  function show(index: number): void {
    at = Math.min(index, frames.length - 1)
    const frame = frames[at]
    if (!frame) return
    const { seq, snapshot, event } = frame
    range.max = String(frames.length - 1)
    range.value = String(at)
    const where = pathsOf(snapshot.value).at(-1) ?? ''
    range.ariaValueText = `${event.type}: ${where}`
    find('seq').textContent = `${seq} of ${frames.at(-1)?.seq ?? seq}`
    find('what').textContent = event.type.replace(/^xstate\./, '')
    find('where').textContent = where
    if (isStored && isReady) post({ type: '@statelyai.inspectSnapshot', snapshot, event })
    if (document.body.classList.contains('alone')) mark()
  }

  function take(frame: StatelyFrame): void {
    frames.push(frame)
    if (isAtEnd || at < 0) show(isAtEnd ? frames.length - 1 : 0)
    range.max = String(frames.length - 1)
  }

  function told(message: StatelyMessage): void {
    if (message.type === 'frame') take(message.frame)
    else if (message.type === 'machine') {
      machine = message.machine
      init()
    } else if (message.type === 'problem') find('problem').textContent = message.text
    else {
      frames.length = 0
      at = -1
      isAtEnd = message.isLive
      find('title').textContent = message.title
      document.title = message.title
      isToPlay = !message.isLive && !matchMedia('(prefers-reduced-motion: reduce)').matches
      playAtFirst()
    }
  }

  /** What the inspector is told of the first actor is a frame, too: for our own chart. */
  function inspected(event: Record<string, unknown>): void {
    if (isReady) post(event)
    else waiting.push(event)
    const { type, sessionId, snapshot, createdAt } = event
    if (type === '@xstate.actor' && root === null) {
      root = sessionId
      machine = JSON.parse((event.definition as string | undefined) ?? '{}') as MachineStates
      if (document.body.classList.contains('alone') && config.chartUrl === null) drawList()
    }
    if (type !== '@xstate.snapshot' || sessionId !== root) return
    const happened = (event.event ?? { type: '' }) as { type: string }
    const stood = snapshot as StatelyFrame['snapshot']
    take({ seq: frames.length + 1, at: Number(createdAt), snapshot: stood, event: happened })
  }

  function playAtFirst(): void {
    if (!isToPlay || (!isReady && !document.body.classList.contains('alone'))) return
    isToPlay = false
    play()
  }

  function play(): void {
    stop()
    playing = setInterval(() => {
      if (at < frames.length - 1) show(at + 1)
      else if (frames.length > 0) stop()
    }, 500)
    find('play').textContent = 'Pause'
  }

  function stop(): void {
    if (playing !== null) clearInterval(playing)
    playing = null
    find('play').textContent = 'Play'
  }

  function go(index: number): void {
    isToPlay = false
    stop()
    isAtEnd = isAtEnd && index >= frames.length - 1
    show(Math.max(0, index))
  }

  range.addEventListener('input', () => {
    go(Number(range.value))
  })
  find('back').addEventListener('click', () => {
    go(at - 1)
  })
  find('next').addEventListener('click', () => {
    go(at + 1)
  })
  find('play').addEventListener('click', () => {
    isToPlay = false
    if (playing !== null) stop()
    else {
      if (at >= frames.length - 1) show(0)
      play()
    }
  })

  if (isStored) {
    const feed = new EventSource(config.feedUrl)
    feed.addEventListener('message', ({ data }) => {
      told(JSON.parse(data as string) as StatelyMessage)
    })
    // Coming back, it would be told everything again.
    feed.addEventListener('error', () => {
      feed.close()
      find('problem').textContent = 'statewright stately has ended: this is what it has told so far.'
    })
  } else {
    new WebSocket(config.feedUrl).addEventListener('message', ({ data }) => {
      inspected(JSON.parse(data as string) as Record<string, unknown>)
    })
  }
}
