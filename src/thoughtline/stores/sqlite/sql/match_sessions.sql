-- Which of these sessions have turns that match a query.
SELECT json_group_array(s.number)
FROM sessions AS s
WHERE s.number IN (SELECT value FROM json_each(:numbers))
  AND (:status IS NULL OR :status = (
      SELECT CASE
          WHEN e.type = 'turn_started' THEN 'running'
          WHEN json_valid(e.data) THEN json_extract(e.data, '$.outcome')
      END
      FROM events AS e
      WHERE e.session = s.number AND e.type IN ('turn_started', 'turn_ended')
      ORDER BY e.seq DESC LIMIT 1
  ))
  AND (:provider IS NULL OR EXISTS (
      SELECT 1 FROM events AS e
      WHERE e.session = s.number AND e.type = 'turn_started' AND :provider = (
          CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.target.provider') END
      )
  ))
  AND (:model IS NULL OR EXISTS (
      SELECT 1 FROM events AS e
      WHERE e.session = s.number AND e.type IN ('turn_started', 'turn_ended') AND :model IN (
          CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.target.model') END,
          CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.target.asked') END,
          CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.model') END
      )
  ))
