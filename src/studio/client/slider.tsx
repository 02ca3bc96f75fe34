import { formatCount } from '../../core/format/format-words.js'
import type { RecordRow } from '../protocol.js'
import { formatClock, formatStatePath } from './format.js'

interface SliderProps {
  rows: readonly RecordRow[]
  place: number
  isPlaying: boolean
  /** Null when there are no live updates. */
  isLive: boolean | null
  /** Whether more may come. */
  isOpen: boolean
  onPlace: (place: number) => void
  onPlay: () => void
  onLive: () => void
  areLanesShown: boolean
  onLanes: () => void
}

/** A native range over the records. */
export function Slider({
  rows,
  place,
  isPlaying,
  isLive,
  isOpen,
  onPlace,
  onPlay,
  onLive,
  areLanesShown,
  onLanes,
}: SliderProps) {
  const row = rows[place]
  const last = rows.length - 1
  return (
    <div class="slider">
      <div class="slider-buttons">
        <Goto
          label="First record"
          path="M5 5v14M19 5 9 12l10 7z"
          isThere={place === 0}
          onGo={() => onPlace(0)}
        />
        <Goto
          label="Record before"
          path="m15 5-7 7 7 7"
          isThere={place === 0}
          onGo={() => onPlace(place - 1)}
        />
        <button
          type="button"
          class="icon play"
          aria-label={isPlaying ? 'Stop playing' : 'Play'}
          onClick={onPlay}
        >
          <Icon path={isPlaying ? 'M8 5v14M16 5v14' : 'M8 5l11 7-11 7z'} />
        </button>
        <Goto
          label="Next record"
          path="m9 5 7 7-7 7"
          isThere={place === last}
          onGo={() => onPlace(place + 1)}
        />
        <Goto
          label="Last record"
          path="M19 5v14M5 5l10 7-10 7z"
          isThere={place === last}
          onGo={() => onPlace(last)}
        />
      </div>
      <input
        type="range"
        min={0}
        max={Math.max(0, last)}
        step={1}
        value={place}
        aria-label="Record"
        aria-valuetext={
          row ? `Record ${row.seq} of ${rows.length}: ${row.label}. ${formatStatePath(row.to)}` : 'No record'
        }
        onInput={(event) => onPlace(Number(event.currentTarget.value))}
      />
      <output>
        {row ? `${formatCount(place + 1)} / ${formatCount(rows.length)}` : ''}
        {row && <small>{formatClock(row.at)}</small>}
      </output>
      <button
        type="button"
        class="icon lanes-button"
        aria-label="Lanes of the timeline"
        aria-pressed={areLanesShown}
        onClick={onLanes}
      >
        <Icon path="M4 6h9M8 12h12M4 18h7" />
      </button>
      {isLive !== null && (
        <button
          type="button"
          class={isOpen ? 'live' : 'live ended'}
          {...(isOpen && { 'aria-pressed': isLive })}
          disabled={!isOpen && place === last}
          onClick={isOpen ? onLive : () => onPlace(last)}
        >
          {isOpen ? 'Live' : 'End'}
        </button>
      )}
    </div>
  )
}

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" class="drawn">
      <path d={path} />
    </svg>
  )
}

interface GotoProps {
  label: string
  path: string
  isThere: boolean
  onGo: () => void
}

function Goto({ label, path, isThere, onGo }: GotoProps) {
  return (
    <button type="button" class="icon" aria-label={label} disabled={isThere} onClick={onGo}>
      <Icon path={path} />
    </button>
  )
}
