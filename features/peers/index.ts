/** Public face of the peers pack: the other servers of the home. */
export { Peers, type PeerTopic, PeerTopics } from './service.ts'
