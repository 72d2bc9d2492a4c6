// Reads one event stream with each public parser until its session.idle, and
// prints what each saw: {"parser": …, "ids": […], "types": […]} on a line.
import { createParser } from 'eventsource-parser';
import { EventSource } from 'eventsource';

const [url, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };

function take(seen, id, data) {
  const event = JSON.parse(data);
  if (event.id !== id) throw new Error(`the id ${id} is not the event's ${event.id}`);
  seen.ids.push(id);
  seen.types.push(event.type);
  return event.type === 'session.idle';
}

async function withParser() {
  const seen = { parser: 'eventsource-parser', ids: [], types: [] };
  const stop = new AbortController();
  const answer = await fetch(url, { headers, signal: stop.signal });
  let done = false;
  const parser = createParser({ onEvent: (e) => { if (!done) done = take(seen, e.id, e.data); } });
  const text = new TextDecoder();
  for await (const chunk of answer.body) {
    parser.feed(text.decode(chunk, { stream: true }));
    if (done) break;
  }
  stop.abort();
  return seen;
}

function withEventSource() {
  const seen = { parser: 'eventsource', ids: [], types: [] };
  const source = new EventSource(url, { fetch: (to, init) => fetch(to, { ...init, headers: { ...init.headers, ...headers } }) });
  return new Promise((resolve, reject) => {
    source.onmessage = (e) => {
      try {
        if (!take(seen, e.lastEventId, e.data)) return;
        source.close();
        resolve(seen);
      } catch (error) {
        reject(error);
      }
    };
  });
}

const readers = [withParser(), withEventSource()];
console.log('reading');
for (const seen of await Promise.all(readers)) console.log(JSON.stringify(seen));
process.exit(0);
