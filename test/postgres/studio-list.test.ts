import { usePlace } from '../stores/use-place.js'
import { describeLongList } from '../studio/long-list.js'
import { postgresPlace } from './place.js'

const { open } = usePlace(postgresPlace)

describeLongList('a long list of sessions in Postgres', open)
